// Refuses to run as code what the command does not hold itself, such as a download, and to ask for the metadata of a
// cloud, which tells its tokens.

// Programs that talk to the host among their words, those that do it where a word or a setting names it by its address
// or as a URL, and one that asks for the metadata by itself.
const TALKS = /^(aria2c|axel|dig|drill|kdig|delv|nslookup|host|ssh|telnet|nc|ncat|netcat|lynx|w3m|links|elinks|xh|https?)$/;
const LED = /^(docker|podman|nerdctl|kubectl|oc|helm|npm|pnpm|yarn|bun|pip3?|uv|go|gem|bundle|cargo|composer|conda|aws|gcloud|az|terraform|tofu)$/;

// Whether one of the words of `command` is the address of the metadata.
function asksMetadata(command) {
  if (/^ec2-?metadata$/.test(command.name)) return true;
  const talks = TALKS.test(command.name);
  if (!talks && !LED.test(command.name)) return false;
  return command.argv.slice(1).map((word) => word.replace(/^([^/]*=|@)/, "")).some((word) => {
    const host = talks ? /^[^/]*[.:]/ : /^\[?[\da-f]*[.:]/i;
    return METADATA.test(/^[a-z+]+:\/\//i.test(word) ? word : host.test(word) ? `x://${word}` : "");
  });
}

const METADATA = /^[a-z+]+:\/\/([^/]*@)?(\[?(fd00:ec2::254|fd20:ce::254|::ffff:(169\.254\.169\.254|a9fe:a9fe))\]?|169\.254\.(169\.25[34]|170\.2|0\.2\.3)|([^/]*[.-])?169[.-]254[.-]169[.-]254\.[a-z.]+|100\.100\.100\.200|168\.63\.129\.16|192\.0\.0\.192|metadata(\.google(\.internal)?|\.goog|\.azure\.com|\.oraclecloud\.com|\.packet\.net|\.tencentyun\.com)?|instance-data(\.ec2\.internal)?|::169\.254\.\d+\.\d+)\.?(:\d*)?:?(\/|$|\s|\?)/i;

// What asks for it, in words.
function metadata(event) {
  const url = paths(event, "urls").find((url) => METADATA.test(url));
  if (url !== undefined) return `asks for the metadata of a cloud: ${url}`;
  const asking = commands(event).find((command) => !has(command, "--help", "--version") && asksMetadata(command));
  return asking === undefined ? "" : `asks for the metadata of a cloud: ${line(asking)}`;
}

function danger(event) {
  if (!event.shell || !event.shell.pipes_to_interpreter) return metadata(event);
  const from = paths(event, "urls");
  const source = from.length > 0 ? ` (${from.slice(0, 3).join(", ")})` : "";
  return `runs as code what nobody has read${source}: ${event.shell.unknown_why}`;
}

function handle(event) {
  return verdict(event, danger(event));
}
