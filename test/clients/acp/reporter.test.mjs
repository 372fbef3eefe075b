// An editor of the SDK before callgate acp, which is the agent itself.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import { test as plain } from 'node:test';
import { Editor, agentMethods, ofKind, shown } from './editor.mjs';
import { around, project, records } from './places.mjs';

// A turn that never ends is a failure, and not a test that hangs.
const test = (name, run) => plain(name, { timeout: 60_000 }, run);

// talking opens a session with a scenario of the model.
async function talking(t, model, editor = {}) {
  const dir = await project(t);
  const e = new Editor(around(['--model', model], dir), { cwd: dir, ...editor });
  t.after(() => e.process.kill('SIGKILL'));
  const session = await e.open(dir);
  return { dir, e, session, say: (text = 'Go on.') => e.prompt(session, text) };
}

test('text is streamed, and comes before the end of the turn', async (t) => {
  const { e, say } = await talking(t, 'text');
  assert.equal(e.initialized.protocolVersion, 1);
  assert.equal((await say()).stopReason, 'end_turn');
  const chunks = e.updates.filter((u) => u.sessionUpdate === 'agent_message_chunk');
  assert.ok(chunks.length > 1, `${chunks.length} chunks`);
  assert.equal(e.text, 'No tool is needed to say that the sea rises and falls twice a day.');
  assert.equal(await e.close(), 0);
});

test('a tool call is reported before it runs, and with its result', async (t) => {
  const { dir, e, say } = await talking(t, 'call');
  assert.equal((await say()).stopReason, 'end_turn');
  const [call] = e.calls;
  assert.deepEqual(call.statuses, ['pending', 'in_progress', 'completed']);
  assert.equal(call.name, 'math.evaluate');
  assert.deepEqual(call.rawInput, { expression: '2*(3+4)' });
  assert.match(JSON.stringify(call.content) + JSON.stringify(call.rawOutput), /14/);
  assert.equal(e.text, 'The value is 14.');
  assert.deepEqual(e.asked, []);
  assert.equal(await e.close(), 0);
  assert.deepEqual((await records(dir)).map((r) => [r.tool, r.verdict]), [['math.evaluate', 'tool_call'], ['', 'text']]);
});

test('a call that is refused is a failed call with the reason', async (t) => {
  const { dir, e, say } = await talking(t, 'refused');
  assert.equal((await say()).stopReason, 'end_turn');
  const [call] = e.calls;
  assert.equal(call.status, 'failed');
  assert.ok(!call.statuses.includes('in_progress'), 'it did not begin');
  assert.ok(shown(call), 'it says why');
  assert.equal(e.text, 'I may not delete it.');
  assert.equal(await e.close(), 0);
  assert.deepEqual((await records(dir)).map((r) => [r.tool, r.code]), [['files.delete', 'permission_denied'], ['', '']]);
});

for (const [kind, status, text] of [['allow_once', 'completed', 'The note has its label.'], ['reject_once', 'failed', 'The person said no.']]) {
  test(`a person is asked, and chooses ${kind}`, async (t) => {
    const { e, say } = await talking(t, 'asked', { choose: ofKind(kind) });
    assert.equal((await say()).stopReason, 'end_turn');
    assert.equal(e.asked.length, 1);
    const [call] = e.calls;
    assert.equal(e.asked[0].toolCall.toolCallId, call.toolCallId);
    assert.equal(call.status, status);
    assert.equal(e.text, text);
    assert.equal(await e.close(), 0);
  });
}

test('the model reads, edits and runs a command by the editor', async (t) => {
  const { dir, e, say } = await talking(t, 'task');
  assert.equal((await say()).stopReason, 'end_turn');
  assert.deepEqual(e.calls.map((c) => [c.name, c.kind, c.status]), [
    ['acp.fs.read', 'read', 'completed'],
    ['acp.fs.write', 'edit', 'completed'],
    ['acp.terminal.create', 'execute', 'completed'],
  ]);
  assert.equal(await fs.readFile(`${dir}/notes.md`, 'utf8'), 'This is the final text.\n');
  // The second read is for the text before the edit, which its diff shows.
  assert.deepEqual([e.read, e.wrote, e.ran], [[`${dir}/notes.md`, `${dir}/notes.md`], [`${dir}/notes.md`], ['wc -c notes.md']]);
  assert.match(e.text, /24 notes\.md/);
  assert.equal(await e.close(), 0);
});

test('a turn that is cancelled while a person is asked ends with cancelled', async (t) => {
  const asked = Promise.withResolvers();
  const answer = Promise.withResolvers();
  const { e, say, session } = await talking(t, 'asked', { choose: () => (asked.resolve(), answer.promise) });
  const turn = say();
  await asked.promise;
  await e.agent.notify(agentMethods.session.cancel, { sessionId: session });
  answer.resolve({ outcome: 'cancelled' });
  assert.equal((await turn).stopReason, 'cancelled');
  assert.ok(!e.calls.some((c) => c.status === 'completed'), 'nothing ran');
  assert.equal(await e.close(), 0);
});

test('a session that is loaded has its conversation again', async (t) => {
  const { dir, e, say, session } = await talking(t, 'call');
  assert.equal(e.initialized.agentCapabilities.loadSession, true);
  await say('How much is it?');
  const before = e.updates.length;
  await e.agent.request(agentMethods.session.load, { sessionId: session, cwd: dir, mcpServers: [] });
  const again = e.updates.slice(before);
  assert.ok(again.some((u) => u.sessionUpdate === 'user_message_chunk' && u.content.text === 'How much is it?'));
  const text = again.filter((u) => u.sessionUpdate === 'agent_message_chunk').map((u) => u.content.text).join('');
  assert.equal(text, 'The value is 14.');
  assert.equal(await e.close(), 0);
});

test('a folder outside of the project is refused', async (t) => {
  const dir = await project(t);
  const e = new Editor(around(['--model', 'text'], dir), { cwd: dir });
  t.after(() => e.process.kill('SIGKILL'));
  await assert.rejects(e.open('/etc'), (error) => error.code === -32602 && /boundary_violation/.test(JSON.stringify(error.data)));
  assert.equal(await e.close(), 0);
});
