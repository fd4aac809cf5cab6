import { Page, PageHead } from "../ui/page.tsx";
import { useMay } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { ExecutionList } from "./execution-list.tsx";

export function ExecutionsPage() {
  const words = useWords().executions;
  const seesAll = useMay("admin");
  return (
    <Page>
      <PageHead title={words.title} answer={seesAll ? words.answer : words.answerOwn} />
      <ExecutionList to="/executions" />
    </Page>
  );
}
