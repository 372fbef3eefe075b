// The official client, openai.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import OpenAI from 'openai';

import { counting, endings, functions, orchestrated, places, question } from './places.mjs';

const tools = Object.entries(functions).map(([name, f]) => ({
  type: 'function',
  function: { name, description: f.description, parameters: f.parameters },
}));

const runnable = Object.entries(functions).map(([name, f]) => ({
  type: 'function',
  function: { name, description: f.description, parameters: f.parameters, parse: JSON.parse, function: async (given) => JSON.stringify(f.run(given)) },
}));

function clientOf(place, more) {
  return new OpenAI({ baseURL: place.baseURL, apiKey: 'unused', ...more });
}

for (const place of places) {
  describe(`openai: ${place.name}`, () => {
    const { completions } = clientOf(place).chat;

    test('text', async () => {
      const got = await completions.create({ model: place.model('text'), messages: question });
      assert.equal(got.choices[0].message.content, endings.text);
      assert.equal(got.choices[0].finish_reason, 'stop');
      assert.ok(got.usage.total_tokens > 0);
    });

    test('text, streamed', async () => {
      const stream = await completions.create({ model: place.model('text'), messages: question, stream: true, stream_options: { include_usage: true } });
      let text = '';
      let usage;
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? '';
        usage = chunk.usage ?? usage;
      }
      assert.equal(text, endings.text);
      assert.ok(usage.total_tokens > 0);
    });

    for (const scenario of ['call', 'bytes']) {
      test(`a tool call and its result: ${scenario}`, async () => {
        const model = place.model(scenario);
        const first = await completions.create({ model, messages: question, tools });
        const [call] = first.choices[0].message.tool_calls;
        assert.equal(first.choices[0].finish_reason, 'tool_calls');
        assert.equal(call.function.name, 'math_evaluate');
        const result = functions.math_evaluate.run(JSON.parse(call.function.arguments));
        const messages = [...question, first.choices[0].message, { role: 'tool', tool_call_id: call.id, content: JSON.stringify(result) }];
        const last = await completions.create({ model, messages, tools });
        assert.equal(last.choices[0].message.content, endings[scenario]);
      });

      test(`a tool call, streamed: ${scenario}`, async () => {
        const stream = completions.stream({ model: place.model(scenario), messages: question, tools });
        const got = await stream.finalChatCompletion();
        const [call] = got.choices[0].message.tool_calls;
        assert.equal(got.choices[0].finish_reason, 'tool_calls');
        assert.equal(call.function.name, 'math_evaluate');
        assert.ok(functions.math_evaluate.run(JSON.parse(call.function.arguments)).value);
      });
    }

    // In the text protocol an answer is one call, and the model has to mend it.
    test('two calls in one answer', { skip: place.protocol === 'text' && 'there is one call in an answer as text' }, async () => {
      const got = await completions.create({ model: place.model('parallel'), messages: question, tools });
      assert.deepEqual(got.choices[0].message.tool_calls.map((c) => c.function.name), ['math_evaluate', 'web_search']);
      assert.equal(await completions.runTools({ model: place.model('parallel'), messages: question, tools: runnable }).finalContent(), 'The value is 5.');
    });

    test('a loop', async () => {
      const runner = completions.runTools({ model: place.model('agent'), messages: question, tools: runnable });
      assert.equal(await runner.finalContent(), endings.agent);
    });

    test('a loop, streamed', async () => {
      const runner = completions.runTools({ model: place.model('agent'), messages: question, tools: runnable, stream: true });
      assert.equal(await runner.finalContent(), endings.agent);
    });

    if (!place.judges) return;

    test('a call that is mended is seen mended only', async () => {
      for (const scenario of ['near-name', 'repair', 'prose']) {
        const got = await completions.create({ model: place.model(scenario), messages: question, tools });
        const [call] = got.choices[0].message.tool_calls;
        assert.ok(functions[call.function.name], scenario);
        assert.notEqual(JSON.parse(call.function.arguments).num_results, '1', scenario);
      }
    });

    test('a refusal is an error of the client', async () => {
      const count = counting();
      const client = clientOf(place, { fetch: count });
      await assert.rejects(client.chat.completions.create({ model: place.model('stubborn'), messages: question, tools }), (error) => {
        assert.ok(error instanceof OpenAI.UnprocessableEntityError);
        assert.equal(error.status, 422);
        assert.equal(error.code, 'unexpected_argument');
        assert.match(error.message, /"round" is not part of/);
        return true;
      });
      assert.equal(count.requests, 1);
    });

    test('a refusal of a stream', async () => {
      await assert.rejects(
        async () => {
          const stream = await completions.create({ model: place.model('stubborn'), messages: question, tools, stream: true });
          for await (const chunk of stream) assert.equal(chunk.choices[0]?.delta.tool_calls, undefined);
        },
        (error) => {
          assert.ok(error instanceof OpenAI.APIError);
          assert.equal(error.code, 'unexpected_argument');
          assert.match(error.message, /"round" is not part of/);
          return true;
        },
      );
    });

    // Text that was shown cannot be taken back, so that stream ends in an error.
    test('a refusal within a stream', { skip: place.protocol !== 'text' && 'prose beside native calls passes' }, async () => {
      let text = '';
      await assert.rejects(
        async () => {
          const stream = await completions.create({ model: place.model('prose'), messages: question, tools, stream: true });
          for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
        },
        (error) => error instanceof OpenAI.APIError && error.code === 'mixed_output',
      );
      assert.equal(text.trim(), 'Let me work that out.');
    });

    test('a tool that is not registered', async () => {
      const unknown = [{ type: 'function', function: { name: 'nobody_knows', parameters: { type: 'object' } } }];
      await assert.rejects(completions.create({ model: place.model('text'), messages: question, tools: unknown }), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError);
        assert.match(error.message, /callgate tools import openai/);
        return true;
      });
    });

    test('an answer that breaks off is no call', async () => {
      // Nothing ran, so the client may ask again, and by default it does.
      const client = clientOf(place, { maxRetries: 0 });
      await assert.rejects(client.chat.completions.create({ model: place.model('cut'), messages: question, tools }), (error) => {
        assert.ok(error instanceof OpenAI.InternalServerError);
        assert.equal(error.status, 502);
        assert.equal(error.code, 'upstream_unavailable');
        return true;
      });
      await assert.rejects(
        async () => {
          for await (const chunk of await client.chat.completions.create({ model: place.model('cut'), messages: question, tools, stream: true })) {
            assert.equal(chunk.choices[0]?.delta.tool_calls, undefined);
          }
        },
        (error) => error instanceof OpenAI.APIError && error.code === 'upstream_unavailable',
      );
    });
  });
}

for (const place of orchestrated) {
  describe(`openai: ${place.name}`, () => {
    const client = clientOf(place);
    const { completions } = client.chat;
    const agent = /^The best page is ".*tides.*", at https:\/\/example\.com\/science\/tides\. The notes of this project begin with "# Notes/;

    test('a whole task in one request', async () => {
      const got = await completions.create({ model: place.model('agent'), messages: question });
      assert.match(got.choices[0].message.content, agent);
      assert.equal(got.choices[0].message.tool_calls, undefined);
      assert.equal(got.choices[0].finish_reason, 'stop');
    });

    test('a whole task, streamed', async () => {
      const stream = await completions.create({ model: place.model('agent'), messages: question, stream: true });
      let text = '';
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
      assert.match(text, agent);
    });

    test('calls that are mended', async () => {
      for (const [scenario, ending] of Object.entries({ 'near-name': /42/, repair: /tides/, prose: /2/, bytes: /2\.5 — exactly/, parallel: /5/ })) {
        const got = await completions.create({ model: place.model(scenario), messages: question });
        assert.match(got.choices[0].message.content, ending, scenario);
      }
    });

    test('an endless loop ends', async () => {
      await assert.rejects(completions.create({ model: place.model('loop'), messages: question }), (error) => {
        assert.ok(error instanceof OpenAI.UnprocessableEntityError);
        assert.equal(error.code, 'bound_reached');
        return true;
      });
      await assert.rejects(
        async () => {
          for await (const chunk of await completions.create({ model: place.model('loop'), messages: question, stream: true })) assert.ok(chunk);
        },
        (error) => error instanceof OpenAI.APIError && error.code === 'bound_reached',
      );
    });

    test('a refusal is an error of the client', async () => {
      await assert.rejects(completions.create({ model: place.model('stubborn'), messages: question }), (error) => {
        assert.ok(error instanceof OpenAI.UnprocessableEntityError);
        assert.equal(error.code, 'unexpected_argument');
        return true;
      });
    });

    test('the models', async () => {
      const ids = [];
      for await (const model of client.models.list()) ids.push(model.id);
      assert.ok(ids.includes(place.model('agent')), ids.join(' '));
    });
  });
}
