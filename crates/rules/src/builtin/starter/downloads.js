// Refuses to run as code what the command does not hold itself, such as a download.

function danger(event) {
  if (!event.shell || !event.shell.pipes_to_interpreter) return "";
  const from = paths(event, "urls");
  const source = from.length > 0 ? ` (${from.slice(0, 3).join(", ")})` : "";
  return `runs as code what nobody has read${source}: ${event.shell.unknown_why}`;
}

function handle(event) {
  return verdict(event, danger(event));
}
