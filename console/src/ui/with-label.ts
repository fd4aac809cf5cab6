/** What the server says of a member of a request, with what its field is called for people. Pure. */
export function withLabel(said: string, labels: Readonly<Record<string, string>>): string {
  const name = Object.keys(labels).find((one) => said.startsWith(`${one} `) || said.startsWith(`${one}:`));
  return name === undefined ? said : `${labels[name] ?? name}${said.slice(name.length)}`;
}
