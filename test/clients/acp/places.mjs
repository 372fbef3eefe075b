// Where the tests take place: a project for each, and a gateway with a configuration of its own.
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

function setting(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run make test-clients`);
  return value;
}

// project makes a folder with two files, and beside it a configuration whose root it is.
export async function project(t) {
  const home = await fs.realpath(await fs.mkdtemp(path.join(os.tmpdir(), 'callgate-acp-')));
  t.after(() => fs.rm(home, { recursive: true }));
  const dir = path.join(home, 'project');
  await fs.cp(setting('CLIENTS_ACP'), path.join(home, 'config'), { recursive: true });
  await fs.mkdir(dir);
  await fs.writeFile(path.join(dir, 'notes.md'), 'This is a draft.\n');
  await fs.writeFile(path.join(dir, 'other.md'), 'Other.\n');
  return dir;
}

const config = (dir) => path.join(dir, '../config');

// around is the command line of callgate acp for a project.
export const around = (args, dir) => [
  setting('CLIENTS_CALLGATE'), 'acp', '--config', path.join(config(dir), 'callgate.yaml'),
  '--agent', 'Analyst', '--workspace', 'acme', '--project', 'alpha', ...args,
];

// records are the decisions in the audit log of a project's gateway.
export async function records(dir) {
  const log = await fs.readFile(path.join(config(dir), 'data/acp/1/audit.jsonl'), 'utf8');
  return log.trim().split('\n').map((line) => JSON.parse(line)).filter((record) => record.event === 'decision');
}
