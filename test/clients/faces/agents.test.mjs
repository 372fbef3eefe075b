// The OpenAI Agents SDK, @openai/agents.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Agent, Runner, OpenAIProvider, setTracingDisabled, tool } from '@openai/agents';

import { places, tooMany } from './faces.mjs';
import { endings, functions } from './places.mjs';

setTracingDisabled(true);

const tools = Object.entries(functions).map(([name, f]) =>
  tool({ name, description: f.description, parameters: { ...f.parameters, additionalProperties: true }, strict: false, execute: async (given) => JSON.stringify(f.run(given)) }),
);

for (const place of places) {
  describe(`@openai/agents: ${place.name}`, () => {
    const runner = new Runner({ modelProvider: new OpenAIProvider({ baseURL: place.baseURL, apiKey: 'unused', useResponses: true }) });
    const agent = (scenario) => new Agent({ name: 'Tides', instructions: 'Be brief.', model: place.model(scenario), tools, modelSettings: { store: false } });

    for (const [scenario, ending] of Object.entries({ text: endings.text, call: endings.call, agent: endings.agent, parallel: 'The value is 5.' })) {
      test(scenario, async () => {
        assert.equal((await runner.run(agent(scenario), 'Please.')).finalOutput, ending);
      });

      test(`${scenario}, streamed`, async () => {
        const got = await runner.run(agent(scenario), 'Please.', { stream: true });
        for await (const event of got) assert.ok(event.type);
        await got.completed;
        assert.equal(got.finalOutput, ending);
      });
    }

    if (!place.judges) return;

    test('a call that is repaired', async () => {
      assert.match((await runner.run(agent('near-name'), 'Please.')).finalOutput, /^The value is 42/);
    });

    test('a refusal is an error', async () => {
      await assert.rejects(runner.run(agent('stubborn'), 'Please.'), (error) => {
        assert.equal(error.code, 'unexpected_argument');
        assert.match(error.message, tooMany);
        return true;
      });
    });

    test('a refusal of a stream', async () => {
      await assert.rejects(async () => {
        const got = await runner.run(agent('stubborn'), 'Please.', { stream: true });
        for await (const event of got) assert.notEqual(event.item?.type, 'tool_call_item');
        await got.completed;
      });
    });
  });
}
