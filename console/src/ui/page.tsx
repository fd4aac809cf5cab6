import { type ReactNode, useEffect } from "react";

/** The head of a page: what it is about, and the answer to its question in one line. Buttons stand beside the name, however long it is; what is said of it stands `below`. */
export function PageHead({ title, shown, below, answer, above, actions }: { title: string; shown?: ReactNode; below?: ReactNode; answer: ReactNode; above?: ReactNode; actions?: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Pintle`;
  }, [title]);
  return (
    <header className="mb-4">
      {above !== undefined && <p className="text-small text-muted [&>a]:inline-block [&>a]:py-1">{above}</p>}
      <div className="flex flex-wrap items-center gap-2">
        <h1 className="mr-auto flex min-w-0 flex-wrap items-center gap-2 text-title font-semibold wrap-anywhere">{shown ?? title}</h1>
        {actions}
      </div>
      {below}
      <p className="mt-1 text-muted" data-testid="answer">
        {answer}
      </p>
    </header>
  );
}

export function Page({ children, wide = false }: { children: ReactNode; wide?: boolean }) {
  return <div className={`mx-auto w-full ${wide ? "max-w-400" : "max-w-300"} px-6 py-4 max-sm:px-4 max-sm:pb-24`}>{children}</div>;
}

export function Card({ children, className = "" }: { children: ReactNode; className?: string }) {
  return <section className={`rounded-md border border-line bg-surface ${className}`}>{children}</section>;
}

/** Where there is nothing yet: what it would be, and the next step. */
export function Empty({ title, isPage = false, children }: { title: string; isPage?: boolean; children?: ReactNode }) {
  const Title = isPage ? "h1" : "p";
  return (
    <Card className="px-6 py-8">
      <Title className="text-large font-semibold">{title}</Title>
      <div className="mt-1 max-w-160 text-muted [&>a]:text-accent [&>a]:underline">{children}</div>
    </Card>
  );
}
