import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { execFile, spawn } from "node:child_process";
import { chmod, cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { archiveName, checksumOf, locate } from "../lib/locate.js";

const run = promisify(execFile);
const source = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const version = JSON.parse(await readFile(path.join(source, "package.json"), "utf8")).version;
const archive = archiveName(version, process.platform, process.arch);

let work, root, bytes, server, address, asked;

before(async () => {
  work = await mkdtemp(path.join(tmpdir(), "callgate-npm-"));
  // A program that says how it was started, ends as it is told, or waits for a signal.
  const program = path.join(work, "callgate");
  await writeFile(program, '#!/bin/sh\necho "started with $*"\n[ "$1" = wait ] && exec sleep 60\nexit "${2:-0}"\n');
  await chmod(program, 0o755);
  await run("tar", ["-czf", path.join(work, archive), "-C", work, "callgate"]);
  bytes = await readFile(path.join(work, archive));
  root = path.join(work, "package");
  await cp(source, root, { recursive: true });
  await write(createHash("sha256").update(bytes).digest("hex"));
  server = createServer((request, response) => {
    asked.push(request.url);
    if (request.url !== `/${archive}`) {
      response.writeHead(404).end();
      return;
    }
    response.end(bytes);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  address = `http://127.0.0.1:${server.address().port}`;
  asked = [];
});

after(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  await rm(work, { recursive: true });
});

const write = (digest) => writeFile(path.join(root, "checksums.txt"), `${"0".repeat(64)}  other.tar.gz\n${digest}  ${archive}\n`);

/** The environment of a test with a cache of its own. */
async function fresh() {
  asked.length = 0;
  return { PATH: process.env.PATH, CALLGATE_RELEASES: address, XDG_CACHE_HOME: await mkdtemp(path.join(work, "cache-")) };
}

const start = (env, ...args) => run(process.execPath, [path.join(root, "bin/callgate.js"), ...args], { env });

test("archives have the names of .goreleaser.yaml", () => {
  assert.equal(archiveName("0.1.0", "linux", "x64"), "callgate_0.1.0_linux_amd64.tar.gz");
  assert.equal(archiveName("0.1.0", "darwin", "arm64"), "callgate_0.1.0_darwin_arm64.tar.gz");
  assert.equal(archiveName("0.1.0", "win32", "x64"), "callgate_0.1.0_windows_amd64.zip");
  assert.throws(() => archiveName("0.1.0", "aix", "x64"), /no release for aix x64/);
  assert.throws(() => archiveName("0.1.0", "linux", "ia32"), /no release for linux ia32/);
});

test("a checksum is that of the whole name, and of one line alone", () => {
  const sum = "a".repeat(64);
  assert.equal(checksumOf(`${sum}  x.zip\n`, "x.zip"), sum);
  for (const bad of ["", `${sum}  x.zip.sig\n`, `${sum}  y/x.zip\n`, `${sum} *x.zip\n`, `${"A".repeat(64)}  x.zip\n`, `${sum}  x.zip\n${sum}  x.zip\n`]) {
    assert.throws(() => checksumOf(bad, "x.zip"), /does not state x.zip/, bad);
  }
});

test("the program is fetched once, and gets the arguments and the exit code through", async () => {
  const env = await fresh();
  assert.equal((await start(env, "check", "0")).stdout, "started with check 0\n");
  await assert.rejects(start(env, "check", "2"), (error) => error.code === 2);
  assert.deepEqual(asked, [`/${archive}`]);
  const kept = await readdir(path.join(env.XDG_CACHE_HOME, "callgate"));
  assert.equal(kept.length, 1, `drafts were left: ${kept}`);
});

test("two that fetch at once find one program", async () => {
  const env = await fresh();
  const found = await Promise.all([1, 2, 3].map(() => locate({ env, root })));
  assert.equal(new Set(found).size, 1);
  assert.equal((await readdir(path.join(env.XDG_CACHE_HOME, "callgate"))).length, 1);
});

test("an archive of other bytes is not unpacked", async () => {
  const env = await fresh();
  const good = bytes;
  bytes = Buffer.concat([good, Buffer.from("x")]);
  try {
    await assert.rejects(start(env, "check"), (error) => error.code === 3 && /expected [0-9a-f]{64}\. It was not unpacked/.test(error.stderr));
  } finally {
    bytes = good;
  }
  assert.deepEqual(await readdir(env.XDG_CACHE_HOME), []);
});

test("without checksums nothing is fetched", async () => {
  const env = await fresh();
  const bare = await mkdtemp(path.join(work, "bare-"));
  await cp(source, bare, { recursive: true });
  await rm(path.join(bare, "checksums.txt"), { force: true });
  await assert.rejects(locate({ env, root: bare }), /no checksums.txt/);
  assert.deepEqual(asked, []);
});

test("an answer that is no archive is an error with its status", async () => {
  const env = await fresh();
  env.CALLGATE_RELEASES += "/elsewhere/";
  await assert.rejects(locate({ env, root }), new RegExp(`/elsewhere/${archive} answered with HTTP status 404`));
});

test("CALLGATE_BINARY is used as it is", async () => {
  const env = await fresh();
  env.CALLGATE_BINARY = path.join(work, "callgate");
  assert.equal((await start(env, "version")).stdout, "started with version\n");
  assert.deepEqual(asked, []);
});

test("a signal to the wrapper ends the program", async () => {
  const env = await fresh();
  const child = spawn(process.execPath, [path.join(root, "bin/callgate.js"), "wait"], { env, stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((done) => child.stdout.once("data", done));
  child.kill("SIGTERM");
  const [code, signal] = await new Promise((done) => child.once("exit", (...how) => done(how)));
  assert.deepEqual([code, signal], [null, "SIGTERM"]);
});

test("the package has a licence, and nothing runs at its installation", async () => {
  const description = JSON.parse(await readFile(path.join(source, "package.json"), "utf8"));
  assert.equal(description.license, "Apache-2.0");
  assert.equal(description.scripts, undefined);
  assert.equal(description.dependencies, undefined);
});
