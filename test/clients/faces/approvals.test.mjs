// A client of Responses whose user answers requests for approval: the OpenAI Agents SDK and the
// openai package, against a gateway that asks its caller about math_evaluate.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Agent, OpenAIProvider, Runner, hostedMcpTool, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';

import { asking, endings } from './places.mjs';

setTracingDisabled(true);

describe('@openai/agents: requests for approval', () => {
  const runner = new Runner({ modelProvider: new OpenAIProvider({ baseURL: asking, apiKey: 'unused', useResponses: true }) });
  const own = (more) => hostedMcpTool({ serverLabel: 'callgate', serverUrl: asking, requireApproval: 'always', ...more });
  const agent = (more) => new Agent({ name: 'Tides', instructions: 'Be brief.', model: 'call', tools: [own(more)], modelSettings: { store: false } });

  for (const stream of [false, true]) {
    const run = async (a, input) => {
      const got = await runner.run(a, input, { stream });
      if (stream) {
        for await (const event of got) assert.ok(event.type);
        await got.completed;
      }
      return got;
    };

    test(`approved, streamed: ${stream}`, async () => {
      const a = agent();
      const asked = await run(a, 'Please.');
      assert.equal(asked.interruptions.length, 1);
      const [item] = asked.interruptions;
      assert.equal(item.name, 'math_evaluate');
      asked.state.approve(item);
      const got = await run(a, asked.state);
      assert.equal(got.interruptions.length, 0);
      assert.equal(got.finalOutput, endings.call);
      const later = await run(a, [...got.history, { role: 'user', content: 'And again.' }]);
      assert.equal(later.interruptions.length, 1, 'the next call asks anew');
    });

    test(`rejected, streamed: ${stream}`, async () => {
      const a = agent();
      const id = (r) => JSON.stringify(r.interruptions[0].rawItem).match(/call_[A-Z2-7]{26}/)[0];
      const asked = await run(a, 'Please.');
      const first = id(asked);
      asked.state.reject(asked.interruptions[0]);
      // The model reads the refusal, and makes the same call again.
      assert.notEqual(id(await run(a, asked.state)), first);
    });

    test(`answered by a function, streamed: ${stream}`, async () => {
      const got = await run(agent({ onApproval: async () => ({ approve: true, reason: 'fine' }) }), 'Please.');
      assert.equal(got.finalOutput, endings.call);
    });
  }
});

describe('openai: requests for approval', () => {
  const client = new OpenAI({ baseURL: asking, apiKey: 'unused', maxRetries: 0 });
  const tools = [{ type: 'mcp', server_label: 'callgate', server_url: asking, require_approval: 'always' }];
  const ask = (input, stream) =>
    stream ? client.responses.stream({ model: 'call', input, tools, store: false }).finalResponse() : client.responses.create({ model: 'call', input, tools, store: false });

  for (const stream of [false, true]) {
    test(`approved, and sent again, streamed: ${stream}`, async () => {
      const input = [{ role: 'user', content: `Please, streamed ${stream}.` }];
      const asked = await ask(input, stream);
      const item = asked.output.find((o) => o.type === 'mcp_approval_request');
      assert.equal(item.server_label, 'callgate');
      assert.deepEqual(JSON.parse(item.arguments), { expression: '2*(3+4)' });
      const answered = [...input, ...asked.output, { type: 'mcp_approval_response', approval_request_id: item.id, approve: true }];
      for (let times = 0; times < 2; times++) assert.equal((await ask(answered, stream)).output_text, endings.call);
      await assert.rejects(ask([...input, ...asked.output], stream), (error) => error.status === 400 && error.code === 'bad_request');
    });
  }
});
