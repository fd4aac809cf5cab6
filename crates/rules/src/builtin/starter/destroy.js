// Refuses to delete what lies outside of the workspace, the workspace itself, or its history in `.git`.

// Below these folders anybody keeps what may go.
const SCRATCH = ["/tmp/", "/var/tmp/", "/dev/shm/"];

// Files of `.git` that people do write themselves.
const OWN_NOTES = /\/\.git\/(info\/exclude|COMMIT_EDITMSG|MERGE_MSG)$/;

function inScratch(path) {
  const below = SCRATCH.find((folder) => path.startsWith(folder));
  return below !== undefined && /^[^*?[]/.test(path.slice(below.length));
}

// Whether `path` is `folder`, holds it, or is all that one of them holds.
function holds(path, folder) {
  const bare = path.replace(/(\/(\*+|\[\^\.\]\*))+$/, "");
  return bare === "" || folder === bare || folder.startsWith(`${bare}/`);
}

function danger(event) {
  const outside = paths(event, "outside");
  const all = commands(event);
  // A command tool starts in the workspace.
  const start = all.length > 0 ? all[0].cwd : "";
  for (const path of paths(event, "deletes")) {
    if (outside.includes(path) && !inScratch(path)) return `deletes ${path}, which lies outside of the workspace`;
    if (start !== "" && holds(path, start)) return `deletes the workspace itself (${path})`;
    if (path.split("/").some((part) => may(part, ".git"))) return `deletes the history of the workspace (${path})`;
  }
  for (const path of paths(event, "writes")) {
    // A copy of it elsewhere is nobody's history.
    if (outside.includes(path) && inScratch(path)) continue;
    if (!OWN_NOTES.test(path) && path.toLowerCase().split("/").includes(".git")) return `changes ${path} past git`;
  }
  for (const command of all) {
    const why = wipes(command);
    if (why) return `${why}: ${line(command)}`;
  }
  const file = namedFiles(event).find((file) => /(^|\/)\.git\//i.test(file) && !OWN_NOTES.test(`/${file}`));
  return file === undefined ? "" : `changes ${file} past git`;
}

// Programs that delete where no path says so.
function wipes(command) {
  const words = told(command);
  const said = (...own) => own.some((word) => words.includes(word));
  switch (command.name) {
    case "docker":
    case "podman":
    case "nerdctl":
    case "docker-compose":
      if (/^(run|exec)$/.test(words[0])) return "";
      if ((said("volume") && said("rm", "prune")) || (said("system") && said("prune"))) return "deletes data of containers";
      return said("down") && has(command, "-v", "--volumes") ? "deletes data of containers" : "";
    case "kubectl":
    case "oc":
      return said("delete", "drain") ? "deletes from a cluster" : "";
    case "helm":
      return said("uninstall", "delete") ? "deletes from a cluster" : "";
    case "terraform":
    case "tofu":
    case "pulumi":
      return said("destroy") || (said("apply") && has(command, "-destroy")) ? "takes an installation apart" : "";
    case "aws":
      return words.some((word) => /^(rm|rb|(delete|terminate)-.+)$/.test(word)) ? "deletes from a cloud" : "";
    case "gcloud":
    case "gsutil":
    case "az":
      return before(command).some((word) => word === "delete" || word === "rm") ? "deletes from a cloud" : "";
    default:
      return "";
  }
}

function handle(event) {
  return verdict(event, danger(event));
}
