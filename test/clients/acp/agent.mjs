// An agent of the SDK without a model: a prompt is a list of steps in JSON.
import fs from 'node:fs/promises';
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';

const { agent: agentMethods, client: clientMethods } = acp.methods;
const sessions = new Map();
let count = 0;

const permissions = [
  { optionId: 'go', name: 'Go', kind: 'allow_once' },
  { optionId: 'always', name: 'Always', kind: 'allow_always' },
  { optionId: 'no', name: 'No', kind: 'reject_once' },
];

// steps are what a prompt can ask for. Each tells the client of a tool call, unless it is one
// that only says something.
const steps = {
  say: (turn, { text }) => turn.update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }),
  // read and write go through the client.
  read: (turn, { path }) =>
    turn.call({ title: `Read ${path}`, kind: 'read', locations: [{ path }] }, async () => {
      const { content } = await turn.ask(clientMethods.fs.readTextFile, { path });
      return content;
    }),
  write: (turn, { path, content }) =>
    turn.call({ title: `Write ${path}`, kind: 'edit', locations: [{ path }] }, async () => {
      await turn.ask(clientMethods.fs.writeTextFile, { path, content });
      return 'written';
    }),
  run: (turn, { command, args }) =>
    turn.call({ title: [command, ...args].join(' '), kind: 'execute' }, async () => {
      const { terminalId } = await turn.ask(clientMethods.terminal.create, { command, args });
      await turn.ask(clientMethods.terminal.waitForExit, { terminalId });
      const { output } = await turn.ask(clientMethods.terminal.output, { terminalId });
      await turn.ask(clientMethods.terminal.release, { terminalId });
      return output;
    }),
  // remove asks first, and then removes the file itself.
  remove: (turn, { path }) => {
    const toolCall = { title: `Remove ${path}`, kind: 'delete', locations: [{ path }], rawInput: { path } };
    return turn.call(toolCall, async (toolCallId) => {
      const { outcome } = await turn.ask(clientMethods.session.requestPermission, { toolCall: { toolCallId, ...toolCall }, options: permissions });
      await turn.update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `[${outcome.optionId ?? outcome.outcome}]` } });
      if (outcome.optionId !== 'go') throw new Error('not allowed');
      await fs.rm(path);
      return 'removed';
    });
  },
  // sneak removes a file without asking, and tells of it.
  sneak: (turn, { path }) =>
    turn.call({ title: `Remove ${path}`, kind: 'delete', locations: [{ path }] }, async () => {
      await fs.rm(path);
      return 'removed';
    }),
  // hang ends when it is cancelled.
  hang: (turn) => turn.cancelled,
};

function newTurn(client, sessionId) {
  const { promise, resolve } = Promise.withResolvers();
  const turn = {
    cancelled: promise,
    cancel: resolve,
    update: (update) => client.notify(clientMethods.session.update, { sessionId, update }),
    ask: (method, params) => client.request(method, { sessionId, ...params }),
    async call(described, run) {
      const toolCallId = `call-${++count}`;
      await turn.update({ sessionUpdate: 'tool_call', toolCallId, status: 'pending', ...described });
      const end = (status, text) =>
        turn.update({ sessionUpdate: 'tool_call_update', toolCallId, status, content: [{ type: 'content', content: { type: 'text', text } }] });
      try {
        await end('completed', await run(toolCallId));
      } catch (error) {
        await end('failed', `${error.code ?? ''} ${error.message} ${JSON.stringify(error.data ?? null)}`);
      }
    },
  };
  return turn;
}

acp
  .agent({ name: 'steps' })
  .onRequest(agentMethods.initialize, ({ params }) => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: { loadSession: false },
    agentInfo: { name: 'steps', version: '1.0.0' },
    // The client's capabilities as this agent got them.
    _meta: { got: params.clientCapabilities },
  }))
  .onRequest(agentMethods.session.new, ({ params }) => {
    const sessionId = `session-${++count}`;
    sessions.set(sessionId, { servers: params.mcpServers });
    return {
      sessionId,
      modes: { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask' }, { id: 'yolo', name: 'YOLO' }] },
    };
  })
  .onRequest(agentMethods.session.setMode, () => ({}))
  .onNotification(agentMethods.session.cancel, ({ params }) => sessions.get(params.sessionId).turn?.cancel('cancelled'))
  .onRequest(agentMethods.session.prompt, async ({ params, client }) => {
    const session = sessions.get(params.sessionId);
    const turn = (session.turn = newTurn(client, params.sessionId));
    const text = params.prompt.map((block) => block.text).join('');
    if (text === 'servers') {
      await steps.say(turn, { text: JSON.stringify(session.servers) });
      return { stopReason: 'end_turn' };
    }
    for (const { step, ...members } of JSON.parse(text)) {
      if ((await steps[step](turn, members)) === 'cancelled') return { stopReason: 'cancelled' };
    }
    return { stopReason: 'end_turn' };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
