import { AdviceNote } from "../advice/advice-note.tsx";
import { causeOf } from "../advice/advice.ts";
import { Problem } from "../ui/problem.tsx";

/** Brings what went wrong into view where it is out of it. */
const intoView = (element: HTMLElement | null): void => element?.scrollIntoView({ block: "nearest" });

/** Why a form was not taken, below its buttons: what somebody presses again stays where it is. */
export function FormProblem({ error }: { error: Error }) {
  return (
    <div ref={intoView}>
      <Problem error={error} />
      <AdviceNote cause={causeOf(error.message)} />
    </div>
  );
}
