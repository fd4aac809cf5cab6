// Refuses to write to a disk below its file system, to format it, or to change how it is divided.

// Devices that are no disks.
const NO_DISK = /^\/dev\/(shm|fd|pts|mqueue)\/|^\/dev\/(null|zero|full|random|urandom|tty|ptmx|stdin|stdout|stderr)$/;

// Programs that do nothing else to a disk.
const WIPES = /^(mkfs(\..+)?|mke2fs|mkswap|mkntfs|mkdosfs|wipefs|blkdiscard|pv(remove|create)|vg(remove|reduce)|lv(remove|reduce)|mkudffs)$/;

// Programs that divide, lock or pool disks, and with what they only look at them.
const TOOLS = {
  fdisk: ["-l", "--list", "-x"],
  cfdisk: [],
  gdisk: ["-l"],
  sgdisk: ["-p", "--print", "-v", "-i"],
  sfdisk: ["-l", "--list", "-d", "--dump", "-J", "--json", "-F"],
  parted: ["-l", "--list", "print"],
  cryptsetup: ["status", "luksDump", "isLuks"],
  mdadm: ["--detail", "-D", "--examine", "-E", "--query", "-Q"],
  zpool: ["status", "list", "get", "iostat", "history"],
  zfs: ["list", "get", "diff", "snapshot"],
  nvme: ["list", "smart-log", "id-ctrl", "id-ns", "list-subsys"],
  hdparm: ["-I", "-i", "-t", "-T", "-tT"],
  badblocks: [],
  tune2fs: ["-l"],
  resize2fs: [],
  debugfs: [],
  dmsetup: ["ls", "info", "status", "table"],
  losetup: ["-a", "-l", "--all", "--list"],
  btrfs: ["show", "list", "df", "usage"],
  diskutil: ["list", "info"],
  swapoff: [],
  mount: ["-l"],
  umount: [],
  "grub-install": [],
};

// Disks, and programs that only look at one that they are given.
const DISK = /^\/dev\/(sd|hd|vd|xvd|nvme|mmcblk|disk|md|dm-|mapper\/|loop|sr)/;
const LOOKS = /^(ls|lsblk|blkid|stat|file|df|du|smartctl|findmnt|udevadm|test|\[|echo|printf|grep|rg|hdparm|nvme)$/;

function danger(event) {
  for (const list of ["writes", "deletes"]) {
    const device = paths(event, list).find((path) => /^\/(dev|sys\/block)\//.test(path) && !NO_DISK.test(path));
    if (device !== undefined) return `writes to the device ${device}`;
  }
  for (const command of commands(event)) {
    if (has(command, "--help", "--version", "-V")) continue;
    if (WIPES.test(command.name)) return `formats or wipes a disk: ${line(command)}`;
    const looks = row(TOOLS, command);
    if (looks !== undefined && command.argv.length > 1 && !has(command, ...looks)) {
      return `changes a disk below its files: ${line(command)}`;
    }
  }
  return "";
}

function doubt(event) {
  const isNew = (command) => !LOOKS.test(command.name) && row(TOOLS, command) === undefined;
  const command = commands(event).find((command) => isNew(command) && command.argv.slice(1).some((word) => DISK.test(word)));
  return command === undefined ? "" : `is given a disk: ${line(command)}`;
}

function handle(event) {
  return verdict(event, danger(event), doubt(event));
}
