// Finds the program of this release for this machine.
//
// CALLGATE_BINARY names a program that is used as it is. Else the archive of the release is
// fetched from CALLGATE_RELEASES, or the releases of the repository; its SHA-256 must be the one
// that checksums.txt of this package states. Without that file nothing is fetched.
import { createHash } from "node:crypto";
import { execFile } from "node:child_process";
import { access, chmod, constants, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const home = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const maxArchiveBytes = 256 << 20;
const deadline = 10 * 60 * 1000;

const systems = { linux: "linux", darwin: "darwin", win32: "windows" };
const processors = { x64: "amd64", arm64: "arm64" };

/** The archive of a release for a platform, as .goreleaser.yaml names it. */
export function archiveName(version, platform, arch) {
  const [os, cpu] = [systems[platform], processors[arch]];
  if (!os || !cpu) {
    throw new Error(`there is no release for ${platform} ${arch}; docs/install.md says how to build one`);
  }
  return `callgate_${version}_${os}_${cpu}.${os === "windows" ? "zip" : "tar.gz"}`;
}

/** The SHA-256 that a checksums file states for a name. A name that stands twice, or not at all, has none. */
export function checksumOf(checksums, name) {
  const found = checksums.split("\n").filter((line) => line.slice(64) === `  ${name}`);
  if (found.length !== 1 || !/^[0-9a-f]{64}  /.test(found[0])) {
    throw new Error(`checksums.txt of this package does not state ${name}`);
  }
  return found[0].slice(0, 64);
}

/** The folder of a user's cache. */
function cacheFolder(env, platform) {
  if (env.XDG_CACHE_HOME) {
    return path.join(env.XDG_CACHE_HOME, "callgate");
  }
  if (platform === "win32" && env.LOCALAPPDATA) {
    return path.join(env.LOCALAPPDATA, "callgate");
  }
  return path.join(homedir(), platform === "darwin" ? "Library/Caches" : ".cache", "callgate");
}

/** The bytes at an address, of at most maxArchiveBytes. */
async function fetched(url) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(deadline) });
  if (!answer.ok) {
    throw new Error(`${url} answered with HTTP status ${answer.status}`);
  }
  const parts = [];
  let size = 0;
  for await (const part of answer.body) {
    size += part.length;
    if (size > maxArchiveBytes) {
      throw new Error(`${url} is larger than ${maxArchiveBytes} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Whether there is a program at a path. */
async function runs(file) {
  return access(file, constants.X_OK).then(() => true, () => false);
}

/** The path of the program; it is fetched if it is not in the cache. */
export async function locate({ env = process.env, platform = process.platform, arch = process.arch, root = home } = {}) {
  if (env.CALLGATE_BINARY) {
    return env.CALLGATE_BINARY;
  }
  const { version, homepage } = JSON.parse(await readFile(path.join(root, "package.json"), "utf8"));
  const archive = archiveName(version, platform, arch);
  const checksums = await readFile(path.join(root, "checksums.txt"), "utf8").catch(() => {
    throw new Error("this package has no checksums.txt, so nothing can be fetched; it is written at the release");
  });
  const expected = checksumOf(checksums, archive);
  const name = platform === "win32" ? "callgate.exe" : "callgate";
  // The digest is part of the path: another release, or another archive, is another folder.
  const folder = path.join(cacheFolder(env, platform), `${version}-${expected.slice(0, 16)}`);
  const program = path.join(folder, name);
  if (await runs(program)) {
    return program;
  }
  const releases = (env.CALLGATE_RELEASES ?? `${homepage}/releases/download/v${version}`).replace(/\/$/, "");
  const bytes = await fetched(`${releases}/${archive}`);
  const actual = createHash("sha256").update(bytes).digest("hex");
  if (actual !== expected) {
    throw new Error(`${archive} has the SHA-256 ${actual}; expected ${expected}. It was not unpacked`);
  }
  await mkdir(path.dirname(folder), { recursive: true, mode: 0o700 });
  const draft = await mkdtemp(path.join(path.dirname(folder), "draft-"));
  try {
    const file = path.join(draft, "archive");
    await writeFile(file, bytes, { mode: 0o600 });
    // tar of Windows and macOS reads both forms; of Linux there are only tar.gz archives.
    await promisify(execFile)("tar", ["-xf", file, "-C", draft, name]);
    await rm(file);
    await chmod(path.join(draft, name), 0o755);
    // Of two that fetch at once, one moves its folder and the other finds it there.
    await rename(draft, folder).catch(async (error) => {
      if (!(await runs(program))) {
        throw error;
      }
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return program;
}
