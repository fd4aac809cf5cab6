import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type SelectHTMLAttributes, useState } from "react";

import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Field, Input, Select } from "../ui/field.tsx";
import { MakeForm, Managed, Own } from "../ui/managed.tsx";
import { Name } from "../ui/name.tsx";
import { Empty } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Sign } from "../ui/sign.tsx";
import { Actions, Cell, Row, Table } from "../ui/table.tsx";
import { tooManyChars } from "../ui/too-long.ts";
import { When } from "../ui/when.tsx";
import type { CallerRole, Member } from "../wire/types.ts";
import { useDraft } from "../wire/use-draft.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { mayDoAs } from "./may.ts";
import { MAX_NAME } from "./bounds.ts";
import { useMembers } from "./queries.ts";

/** The roles that a member can have; owners stand in the configuration. */
const GIVEN: readonly CallerRole[] = ["viewer", "operator", "admin"];

/** What is to be done with a member, once it was asked for. */
type Wanted = { readonly member: Member; readonly to: "off" | "remove" | CallerRole };

/** Who is in this tenant, and what they may. */
export function MembersPart() {
  const words = useWords().settings.members;
  const { me } = useWire();
  const found = useMembers();
  const within = found.data?.filter(({ enabled }) => enabled).length;
  return (
    <Managed
      title={words.title}
      answer={within === undefined ? words.loading : words.answer(within, me.tenant_name || me.tenant_slug)}
      found={found}
      making={{ action: words.add, about: words.addAbout, form: (onClose) => <AddMember onClose={onClose} /> }}
      empty={
        <Empty title={words.empty}>
          <p>{words.emptyAbout}</p>
        </Empty>
      }
    >
      {(members) => <MemberTable members={members} />}
    </Managed>
  );
}

/** Who is to come in. */
interface NewMember {
  readonly userId: string;
  readonly role: CallerRole;
}

const NOBODY_YET: NewMember = { userId: "", role: "viewer" };

function AddMember({ onClose }: { onClose: () => void }) {
  const all = useWords();
  const words = all.settings.members;
  const { connection } = useWire();
  const queries = useQueryClient();
  const { typed, set, drop } = useDraft<NewMember>("members.add", NOBODY_YET);
  const { userId, role } = typed;
  const long = tooManyChars(userId, MAX_NAME, all.hooks.reasonLong);
  const add = async (): Promise<void> => {
    await connection.request("members.add", { userId: userId.trim(), role });
    drop();
    await queries.invalidateQueries({ queryKey: ["settings", "members"] });
  };
  return (
    <MakeForm action={words.add} ready={userId.trim() !== "" && long === undefined} make={add} onClose={onClose} labels={{ userId: words.user }}>
      <Field label={words.user} hint={words.userHint} error={long}>
        {(about) => <Input {...about} required value={userId} onChange={(event) => set({ userId: event.target.value, role })} />}
      </Field>
      <Field label={words.role} hint={mayDoAs(role).map((one) => all.settings.mayDo[one]).join(" · ")}>
        {(about) => <GivenRole {...about} role={role} onGive={(given) => set({ userId, role: given })} />}
      </Field>
    </MakeForm>
  );
}

/** The roles that can be given, of which one is. */
function GivenRole({ role, onGive, ...about }: { role: CallerRole; onGive: (role: CallerRole) => void } & Omit<SelectHTMLAttributes<HTMLSelectElement>, "role">) {
  const words = useWords().roles;
  return (
    <Select {...about} value={role} onChange={(event) => onGive(GIVEN.find((one) => one === event.target.value) ?? role)}>
      {GIVEN.map((one) => (
        <option key={one} value={one}>
          {words[one]}
        </option>
      ))}
    </Select>
  );
}

function MemberTable({ members }: { members: readonly Member[] }) {
  const all = useWords();
  const words = all.settings.members;
  const { connection, me } = useWire();
  const queries = useQueryClient();
  const [wanted, setWanted] = useState<Wanted>();
  const fresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["settings"] });
  const enable = useMutation({ mutationFn: (userId: string) => connection.request("members.update", { userId, enabled: true }), onSuccess: fresh });
  return (
    <>
      {enable.error !== null && <Problem error={enable.error} />}
      <Table label={words.title} head={[words.user, words.role, words.state, words.since, all.actions]}>
        {members.map((member) => (
          <Row key={member.userId} name={member.userId}>
            <Cell>
              <span className="font-semibold"><Name of={member.userId} /></span>
              {member.userId === me.user_id && <Own>{words.you}</Own>}
            </Cell>
            <Cell name={words.role}>
              <GivenRole className="w-auto!" aria-label={words.roleOf(member.userId)} role={member.role} onGive={(to) => setWanted({ member, to })} />
            </Cell>
            <Cell name={words.state}>
              <Sign kind={member.enabled ? "allow" : "off"} word={member.enabled ? words.in : words.out} />
            </Cell>
            <Cell name={words.since}>
              <span className="text-muted">
                <When at={member.createdAt} /> {member.createdBy !== "" && all.settings.keys.by(member.createdBy)}
              </span>
            </Cell>
            <Actions>
              {member.enabled ? (
                <Button aria-label={words.offWhich(member.userId)} onClick={() => setWanted({ member, to: "off" })}>
                  {words.off}
                </Button>
              ) : (
                <Button aria-label={words.onWhich(member.userId)} disabled={enable.isPending} onClick={() => enable.mutate(member.userId)}>
                  {words.on}
                </Button>
              )}
              <Button look="danger" aria-label={words.removeWhich(member.userId)} onClick={() => setWanted({ member, to: "remove" })}>
                {words.remove}
              </Button>
            </Actions>
          </Row>
        ))}
      </Table>
      {wanted !== undefined && <Sure wanted={wanted} onClose={() => setWanted(undefined)} onDone={fresh} />}
    </>
  );
}

/** Says what ends, before it ends. */
function Sure({ wanted: { member, to }, onClose, onDone }: { wanted: Wanted; onClose: () => void; onDone: () => Promise<void> }) {
  const all = useWords();
  const words = all.settings.members;
  const { connection, me } = useWire();
  const { userId } = member;
  const own = userId === me.user_id ? ` ${words.thatIsYou}` : "";
  const said = {
    off: { title: words.offTitle(userId), about: words.offAbout, action: words.off },
    remove: { title: words.removeTitle(userId), about: words.removeAbout, action: words.remove },
    role: { title: words.roleTitle(userId, to === "off" || to === "remove" ? "" : all.roles[to]), about: words.roleAbout, action: words.change },
  }[to === "off" || to === "remove" ? to : "role"];
  return (
    <Confirm
      open
      onClose={onClose}
      title={said.title}
      about={said.about + own}
      action={said.action}
      reasonHint={to === "off" || to === "remove" ? all.settings.reasonHint : undefined}
      act={async (reason) => {
        if (to === "remove") {
          await connection.request("members.remove", { userId, reason });
        } else {
          await connection.request("members.update", to === "off" ? { userId, enabled: false, reason } : { userId, role: to });
        }
        await onDone();
      }}
    />
  );
}
