// acpx, a client for the command line, before callgate acp.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test as plain } from 'node:test';
import { promisify } from 'node:util';
import { around, project, records } from './places.mjs';

const run = promisify(execFile);
const test = (name, body) => plain(name, { timeout: 90_000 }, body);

// denied is how acpx exits where it has denied all that it was asked.
const denied = 5;

async function acpx(dir, model, ...flags) {
  const agent = around(['--model', model], dir).join(' ');
  const program = new URL('node_modules/acpx/dist/cli.js', import.meta.url).pathname;
  const { stdout } = await run(process.execPath, [program, '--agent', agent, '--cwd', dir, '--format', 'json', ...flags, 'exec', 'Go on.'], {
    env: { ...process.env, HOME: dir, CI: '1' },
  }).catch((error) => {
    if (error.code !== denied) throw error;
    return error;
  });
  return stdout.trim().split('\n').map((line) => JSON.parse(line));
}

const updates = (messages) => messages.filter((m) => m.method === 'session/update').map((m) => m.params.update);
const text = (messages) => updates(messages).filter((u) => u.sessionUpdate === 'agent_message_chunk').map((u) => u.content.text).join('');
const stopReason = (messages) => messages.map((m) => m.result?.stopReason).find(Boolean);

test('acpx has an answer', async (t) => {
  const dir = await project(t);
  const messages = await acpx(dir, 'call', '--approve-all');
  assert.equal(stopReason(messages), 'end_turn');
  assert.equal(text(messages), 'The value is 14.');
  assert.deepEqual((await records(dir)).map((r) => [r.tool, r.verdict]), [['math.evaluate', 'tool_call'], ['', 'text']]);
});

test('acpx runs a task in its folder', async (t) => {
  const dir = await project(t);
  const messages = await acpx(dir, 'task', '--approve-all');
  assert.equal(stopReason(messages), 'end_turn');
  assert.match(text(messages), /24 notes\.md/);
});

for (const [flag, words] of [['--approve-all', 'The note has its label.'], ['--deny-all', 'The person said no.']]) {
  test(`acpx answers a question by ${flag}`, async (t) => {
    const dir = await project(t);
    assert.equal(text(await acpx(dir, 'asked', flag)), words);
  });
}
