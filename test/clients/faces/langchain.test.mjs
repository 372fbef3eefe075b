// LangChain's ChatAnthropic, @langchain/anthropic.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { ChatAnthropic } from '@langchain/anthropic';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';

import { collected, places, tooMany } from './faces.mjs';
import { endings, functions } from './places.mjs';

const tools = Object.entries(functions).map(([name, f]) => ({ name, description: f.description, input_schema: f.parameters }));

for (const place of places) {
  describe(`@langchain/anthropic: ${place.name}`, () => {
    const modelOf = (scenario) =>
      new ChatAnthropic({ model: place.model(scenario), apiKey: 'unused', anthropicApiUrl: place.baseURL.replace(/\/v1$/, ''), maxTokens: 1000, maxRetries: 0 });

    test('text', async () => {
      assert.equal((await modelOf('text').invoke('Please.')).text, endings.text);
      const got = await collected(modelOf('text').stream('Please.'));
      assert.equal(got.pieces.map((p) => p.text).join(''), endings.text);
    });

    for (const scenario of ['agent', 'thinking', 'parallel']) {
      test(`a loop: ${scenario}`, async () => {
        const model = modelOf(scenario).bindTools(tools);
        const messages = [new HumanMessage('Please.')];
        for (let turn = 0; turn < 5; turn++) {
          const got = await model.invoke(messages);
          messages.push(got);
          if (got.tool_calls.length === 0) break;
          for (const call of got.tool_calls) {
            messages.push(new ToolMessage({ tool_call_id: call.id, content: JSON.stringify(functions[call.name].run(call.args)) }));
          }
        }
        assert.match(messages.at(-1).text, /^The (best page|value) is/);
      });
    }

    test('a call, streamed', async () => {
      const got = await collected(modelOf('bytes').bindTools(tools).stream('Please.'));
      const all = got.pieces.reduce((sum, p) => sum.concat(p));
      assert.deepEqual(all.tool_calls.map((c) => [c.name, c.args]), [['math_evaluate', { expression: '10/4' }]]);
    });

    if (!place.judges) return;

    test('a call that is repaired is seen repaired only', async () => {
      const got = await modelOf('near-name').bindTools(tools).invoke('Please.');
      assert.deepEqual(got.tool_calls.map((c) => c.name), ['math_evaluate']);
    });

    test('a refusal is an error', async () => {
      await assert.rejects(modelOf('stubborn').bindTools(tools).invoke('Please.'), tooMany);
      const got = await collected(modelOf('stubborn').bindTools(tools).stream('Please.'));
      assert.match(String(got.error), tooMany);
    });
  });
}
