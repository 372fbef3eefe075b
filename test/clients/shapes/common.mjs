// Helpers that the shapes of several clients share.

// The tools of the application, under the names of native calls.
export const functions = {
  math_evaluate: {
    description: 'Evaluate an arithmetic expression.',
    parameters: { type: 'object', properties: { expression: { type: 'string' } }, required: ['expression'], additionalProperties: false },
    run: ({ expression }) => ({ value: { '2*(3+4)': 14, '2+3': 5, '6*7': 42 }[expression] }),
  },
  web_search: {
    description: 'Search for words.',
    parameters: { type: 'object', properties: { query: { type: 'string' }, num_results: { type: 'integer' } }, required: ['query'], additionalProperties: false },
    run: () => ({ results: [{ title: 'Two tides a day', url: 'https://example.com/tides' }] }),
  },
  files_read: {
    description: 'Read a file.',
    parameters: { type: 'object', properties: { path: { type: 'string' }, lines: { type: 'array', items: { type: 'integer' } } }, required: ['path'], additionalProperties: false },
    run: ({ path }) => ({ path, text: '# Notes' }),
  },
};

// One that the registry of the gateway does not have.
export const weather = {
  description: 'The weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
  run: ({ city }) => ({ value: `It rains in ${city}.` }),
};

export const question = [{ role: 'user', content: 'Please.' }];

// The scenario structured answers with {"rises":2,"body":"the sea"}.
export const structure = {
  type: 'object',
  properties: { rises: { type: 'integer' }, body: { type: 'string' } },
  required: ['rises', 'body'],
  additionalProperties: false,
};

// The smallest picture, sound and document that a client sends.
export const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export const sound = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
export const paper = 'JVBERi0xLjQKJSVFT0YK';
