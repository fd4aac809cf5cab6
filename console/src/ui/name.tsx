import { ExactText } from "./exact.tsx";

/** A name or a text that somebody else gave, within others: it turns none of its neighbours round, and what cannot be seen in
 * it stands there as a mark. */
export const Name = ({ of }: { of: string }) => (
  <bdi>
    <ExactText text={of} />
  </bdi>
);
