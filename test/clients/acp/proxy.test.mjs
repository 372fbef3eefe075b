// An agent of the SDK behind callgate acp, and an editor of the SDK before it.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import path from 'node:path';
import { test as plain } from 'node:test';
import { Editor, agentMethods, ofKind, shown } from './editor.mjs';
import { around, project, records } from './places.mjs';

const test = (name, run) => plain(name, { timeout: 60_000 }, run);
const step = (name, members) => ({ step: name, ...members });

// behind starts the agent behind the gateway, with a project of its own.
async function behind(t, editor = {}, flags = []) {
  const dir = await project(t);
  const e = new Editor(around([...flags, '--', process.execPath, new URL('agent.mjs', import.meta.url).pathname], dir), { cwd: dir, ...editor });
  t.after(() => e.process.kill('SIGKILL'));
  const session = await e.open(dir);
  return { dir, e, play: (...steps) => e.prompt(session, JSON.stringify(steps)), session };
}

test('files and terminals of the editor are judged, and what is allowed passes', async (t) => {
  const { dir, e, play } = await behind(t);
  const { stopReason } = await play(
    step('read', { path: `${dir}/notes.md` }),
    step('write', { path: `${dir}/new.md`, content: 'new\n' }),
    step('run', { command: 'wc', args: ['-c', `${dir}/new.md`] }),
    step('say', { text: 'Done.' }),
  );
  assert.equal(stopReason, 'end_turn');
  assert.deepEqual(e.calls.map((c) => c.status), ['completed', 'completed', 'completed']);
  assert.equal(shown(e.calls[0]), 'This is a draft.\n');
  assert.match(shown(e.calls[2]), /^4 /);
  assert.equal(e.text, 'Done.');
  assert.equal(await fs.readFile(`${dir}/new.md`, 'utf8'), 'new\n');
  assert.deepEqual([e.read, e.wrote, e.ran], [[`${dir}/notes.md`], [`${dir}/new.md`], [`wc -c ${dir}/new.md`]]);
  assert.deepEqual(e.asked, [], 'nobody is asked what the policy allows');
  assert.equal(await e.close(), 0);
  assert.deepEqual((await records(dir)).map((r) => [r.tool, r.verdict]), [
    ['acp.fs.read', 'tool_call'],
    ['acp.fs.write', 'tool_call'],
    ['acp.terminal.create', 'tool_call'],
  ]);
});

test('what is refused does not reach the editor, and the agent learns why', async (t) => {
  const { dir, e, play } = await behind(t);
  const { stopReason } = await play(
    step('read', { path: '/etc/hostname' }),
    step('write', { path: path.join(dir, '..', 'outside.md'), content: 'x' }),
    step('run', { command: 'rm', args: ['-rf', dir] }),
  );
  assert.equal(stopReason, 'end_turn');
  assert.deepEqual(e.calls.map((c) => c.status), ['failed', 'failed', 'failed']);
  assert.match(shown(e.calls[0]), /-32000 .*boundary_violation/);
  assert.match(shown(e.calls[1]), /-32000 .*boundary_violation/);
  assert.match(shown(e.calls[2]), /-32000 .*permission_denied/);
  assert.deepEqual([e.read, e.wrote, e.ran], [[], [], []]);
  assert.equal(await e.close(), 0);
  assert.deepEqual((await records(dir)).map((r) => r.code), ['boundary_violation', 'boundary_violation', 'permission_denied']);
});

test('a person is asked where a rule asks the caller', async (t) => {
  const answers = [ofKind('allow_once'), ofKind('reject_once')];
  const { dir, e, play } = await behind(t, { choose: (params) => answers.shift()(params) });
  await play(step('remove', { path: `${dir}/other.md` }), step('remove', { path: `${dir}/notes.md` }));
  assert.equal(e.asked.length, 2);
  assert.match(e.asked[0].toolCall.title, /other\.md/);
  assert.equal(e.text, '[go][no]', 'the agent gets an option of its own');
  assert.deepEqual(e.calls.map((c) => c.status), ['completed', 'failed']);
  assert.deepEqual((await fs.readdir(dir)).filter((name) => name.endsWith('.md')), ['notes.md']);
  assert.equal(await e.close(), 0);
});

test('a call that ran without being asked for ends the turn', async (t) => {
  const { dir, e, play } = await behind(t);
  const turn = play(step('sneak', { path: `${dir}/other.md` }), step('hang'));
  await assert.rejects(turn, (error) => error.code === -32603 && error.data.callgate.code === 'permission_denied' && /without having been asked/.test(error.message));
  await e.close();
  assert.ok((await records(dir)).some((r) => JSON.stringify(r).includes('unjudged')), 'it is in the audit log');
});

test('with --unjudged note it is recorded, and the turn goes on', async (t) => {
  const { dir, e, play } = await behind(t, {}, ['--unjudged', 'note']);
  const { stopReason } = await play(step('sneak', { path: `${dir}/other.md` }), step('say', { text: 'On.' }));
  assert.equal(stopReason, 'end_turn');
  assert.equal(e.text, 'On.');
  assert.equal(await e.close(), 0);
  assert.ok((await records(dir)).some((r) => JSON.stringify(r).includes('unjudged')), 'it is in the audit log');
});

test('a cancelled turn is answered with cancelled', async (t) => {
  const { e, play, session } = await behind(t);
  const turn = play(step('hang'));
  await e.agent.notify(agentMethods.session.cancel, { sessionId: session });
  assert.equal((await turn).stopReason, 'cancelled');
  assert.equal(await e.close(), 0);
});

test('modes that ask nobody are not offered, nor set', async (t) => {
  const { e, session } = await behind(t);
  assert.deepEqual(e.session.modes.availableModes.map((m) => m.id), ['ask']);
  await assert.rejects(e.agent.request(agentMethods.session.setMode, { sessionId: session, modeId: 'yolo' }));
  await e.agent.request(agentMethods.session.setMode, { sessionId: session, modeId: 'ask' });
  assert.equal(await e.close(), 0);
});

test('the agent has the tools of callgate mcp, and no other server', async (t) => {
  const dir = await project(t);
  const e = new Editor(around(['--', process.execPath, new URL('agent.mjs', import.meta.url).pathname], dir), { cwd: dir });
  t.after(() => e.process.kill('SIGKILL'));
  const session = await e.open(dir, [{ name: 'mine', command: '/bin/false', args: [], env: [] }]);
  await e.prompt(session, 'servers');
  const servers = JSON.parse(e.text);
  assert.equal(servers.length, 1);
  assert.match(servers[0].command, /callgate$/);
  assert.equal(servers[0].args[0], 'mcp');
  assert.equal(await e.close(), 0);
});
