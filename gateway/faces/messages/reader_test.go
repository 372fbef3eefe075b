package messages

import (
	"errors"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/turns"
)

// tool is the start of a tool_use with an input.
func tool(index, id, input string) string {
	return `content_block_start {"type":"content_block_start","index":` + index + `,"content_block":{"type":"tool_use","id":"` + id + `","name":"search","input":` + input + `}}`
}

// startOf is a message_start with content and a reason.
func startOf(content, reason string) string {
	line := strings.Replace(lineStart, `"content":[]`, `"content":[`+content+`]`, 1)
	return strings.Replace(line, `"stop_reason":null`, `"stop_reason":`+reason, 1)
}

const wholeCall = `{"type":"tool_use","id":"toolu_9","name":"search","input":{"q":1},"caller":{"type":"direct"}}`

// TestPlacesOfACall finds one call in each place where it can stand (AM-43, AM-44).
func TestPlacesOfACall(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		input string
	}{
		"in deltas":                          {[]string{lineStart, lineTool0, lineArgs0, lineStop0, lineToolUse, lineStop}, `{"q":1}`},
		"in two deltas":                      {[]string{lineStart, lineTool0, strings.Replace(lineArgs0, `{\"q\":1}`, `{\"q\"`, 1), strings.Replace(lineArgs0, `{\"q\":1}`, `:1}`, 1), lineStop0, lineToolUse, lineStop}, `{"q":1}`},
		"in no delta":                        {[]string{lineStart, lineTool0, lineStop0, lineToolUse, lineStop}, `{}`},
		"in an empty delta":                  {[]string{lineStart, lineTool0, strings.Replace(lineArgs0, `{\"q\":1}`, ``, 1), lineStop0, lineToolUse, lineStop}, `{}`},
		"in a blank delta":                   {[]string{lineStart, lineTool0, strings.Replace(lineArgs0, `{\"q\":1}`, ` \n`, 1), lineStop0, lineToolUse, lineStop}, `{}`},
		"in content_block_start":             {[]string{lineStart, tool("0", "toolu_1", `{"q":1}`), lineStop0, lineToolUse, lineStop}, `{"q":1}`},
		"in both, one empty":                 {[]string{lineStart, tool("0", "toolu_1", `{"q":1}`), strings.Replace(lineArgs0, `{\"q\":1}`, ``, 1), lineStop0, lineToolUse, lineStop}, `{"q":1}`},
		"in message_start":                   {[]string{startOf(wholeCall, `"tool_use"`), lineStop}, `{"q":1}`},
		"there, with a delta":                {[]string{startOf(wholeCall, "null"), lineToolUse, lineStop}, `{"q":1}`},
		"behind text":                        {[]string{lineStart, lineText, lineHello, lineStop0, lineTool1, lineArgs1, lineStop1, lineToolUse, lineStop}, `{"q":1}`},
		"in a delta, with null in the start": {[]string{lineStart, tool("0", "toolu_1", "null"), lineArgs0, lineStop0, lineToolUse, lineStop}, `{"q":1}`},
		"in a delta, with none in the start": {[]string{lineStart, strings.Replace(lineTool0, `,"input":{}`, "", 1), lineArgs0, lineStop0, lineToolUse, lineStop}, `{"q":1}`},
		"that is null":                       {[]string{lineStart, tool("0", "toolu_1", "null"), lineStop0, lineToolUse, lineStop}, `{}`},
		"that is blank":                      {[]string{lineStart, tool("0", "toolu_1", `" "`), lineStop0, lineToolUse, lineStop}, `{}`},
		"nowhere":                            {[]string{lineStart, strings.Replace(lineTool0, `,"input":{}`, "", 1), lineStop0, lineToolUse, lineStop}, `{}`},
		"with no end":                        {[]string{lineStart, lineTool0, lineArgs0, lineStop0, lineToolUse}, `{"q":1}`},
		"with [DONE] as the end":             {[]string{lineStart, lineTool0, lineArgs0, lineStop0, lineToolUse, "data [DONE]"}, `{"q":1}`},
		"beside another":                     {[]string{lineStart, strings.Replace(lineTool0, `"input":{}`, `"arguments":{"q":2}`, 1), lineArgs0, lineStop0, lineToolUse, lineStop}, `{"q":1}`},
		"nowhere, with members of servers":   {[]string{lineStart, strings.Replace(lineTool0, `"input":{}`, `"input":{},"parameters":{},"args":"{}","text":"","index":1,"provider_specific_fields":{"thought_signature":"c2ln"},"cache_control":{"type":"ephemeral"}`, 1), lineStop0, lineToolUse, lineStop}, `{}`},
		"nowhere, with padded events": {[]string{lineStart, strings.Replace(lineTool0, `"index":0`, `"index":0,"obfuscation":"xyz"`, 1),
			strings.Replace(lineArgs0, `"index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}`, `"index":0,"delta":{"type":"input_json_delta","partial_json":""},"p":"abcdefgh"`, 1),
			strings.Replace(lineStop0, `"index":0`, `"index":0,"p":"abcdefghijk","trace":["a"]`, 1), lineToolUse, lineStop}, `{}`},
		"stated again where it stops":     {[]string{lineStart, lineTool0, strings.Replace(lineArgs0, `{\"q\":1}`, `{\"q\": 1}`, 1), stopOf(wholeCall, "toolu_9", "toolu_1"), lineToolUse, lineStop}, `{"q": 1}`},
		"stated again in part":            {[]string{lineStart, lineTool0, lineArgs0, stopOf(`{"type":"tool_use","name":"search","input":{}}`), lineToolUse, lineStop}, `{"q":1}`},
		"stated again in message_stop":    {[]string{lineStart, thinkingStart, lineStop0, strings.Replace(lineText, `"index":0`, `"index":1`, 1), lineStop1, tool("2", "toolu_9", `{"q":1}`), strings.Replace(lineStop0, `"index":0`, `"index":2`, 1), lineToolUse, `message_stop {"type":"message_stop","message":{"content":[` + wholeCall + `]}}`}, `{"q":1}`},
		"and nothing in message_stop":     {[]string{lineStart, lineTool0, lineArgs0, lineStop0, strings.Replace(lineToolUse, `"delta"`, `"content":null,"content_block":null,"message":{"content":[]},"tool_calls":[],"delta"`, 1), `message_stop {"type":"message_stop","message":{"content":[ ],"stop_reason":"tool_use"}}`}, `{"q":1}`},
		"within a text":                   {[]string{lineStart, lineText, lineTool1, lineHello, lineArgs1, lineStop1, lineHello, lineStop0, lineToolUse, lineStop}, `{"q":1}`},
		"in deltas in turn with a text's": {[]string{lineStart, lineText, lineHello, lineTool1, strings.Replace(lineArgs1, `{\"q\":1}`, `{\"q\"`, 1), lineHello, strings.Replace(lineArgs1, `{\"q\":1}`, `:1}`, 1), lineStop0, lineStop1, lineToolUse, lineStop}, `{"q":1}`},
		"that is no JSON":                 {[]string{lineStart, lineTool0, strings.Replace(lineArgs0, `{\"q\":1}`, `{\"q\":`, 1), lineStop0, lineToolUse, lineStop}, `{"q":`},
		"with a name twice":               {[]string{lineStart, tool("0", "toolu_1", `{"q":1,"q":2}`), lineStop0, lineToolUse, lineStop}, `{"q":1,"q":2}`},
		"too deep":                        {[]string{lineStart, tool("0", "toolu_1", `{"q":`+strings.Repeat("[", 300)+strings.Repeat("]", 300)+`}`), lineStop0, lineToolUse, lineStop}, `{"q":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`},
		"that is no object":               {[]string{lineStart, tool("0", "toolu_1", `[1]`), lineStop0, lineToolUse, lineStop}, `[1]`},
		"that is a digit":                 {[]string{lineStart, tool("0", "toolu_1", `1`), lineStop0, lineToolUse, lineStop}, `1`},
	} {
		got := readStream(streamOf(test.lines...), options{})
		if got.err != nil {
			t.Errorf("%s: %v", name, got.err)
			continue
		}
		calls := callsOf(got.reply)
		if len(calls) != 1 || string(calls[0].Call.Arguments) != test.input || calls[0].Call.Name != "search" || got.reply.Answers[0].Reason != "tool_use" {
			t.Errorf("%s: found %+v, expected the input %s", name, calls, test.input)
		}
		if strings.Contains(got.shown, "tool_use") || strings.Contains(got.shown, `"input"`) {
			t.Errorf("%s: a call was shown: %s", name, got.shown)
		}
		again := readStream(strings.NewReader(got.asSent(t)), options{})
		if again.err != nil || describe(again.reply) != describe(got.reply) && test.input[0] == '{' && compact([]byte(test.input)) != test.input {
			t.Errorf("%s: what a client is sent is another reply: %v", name, again.err)
		}
	}
}

// TestWholeInputs holds that the input of a call in a whole message is the bytes of the wire,
// with faults that the kernel names, and that faults elsewhere refuse the message.
func TestWholeInputs(t *testing.T) {
	message := func(block string) []byte {
		_, m, _ := strings.Cut(startOf(block, `"tool_use"`), `"message":`)
		return []byte(strings.TrimSuffix(m, "}"))
	}
	for _, input := range []string{`{"q": 1 }`, `{"q":1,"q":2}`, "{\"q\":\"\xff\"}", `{"q":"\ud800"}`, `{"q":1e999999}`, strings.Repeat("[", 400) + strings.Repeat("]", 400), `7`} {
		r, err := readWhole(message(strings.Replace(wholeCall, `{"q":1}`, input, 1)), options{})
		if err != nil {
			t.Errorf("%.40q: %v", input, err)
		} else if got := string(callsOf(r)[0].Call.Arguments); got != input {
			t.Errorf("%.40q: found %.40q", input, got)
		}
	}
	for name, block := range map[string]string{
		"input that ends early":    strings.Replace(wholeCall, `{"q":1}`, `{"q":`, 1),
		"two inputs":               strings.Replace(wholeCall, `"input"`, `"input":{},"input"`, 1),
		"two names":                strings.Replace(wholeCall, `"name"`, `"name":"a","name"`, 1),
		"input of another name":    strings.Replace(wholeCall, `"input":{"q":1}`, `"args":{"q":1}`, 1),
		"blank input beside it":    strings.Replace(wholeCall, `"input":{"q":1}`, `"input":" ","params":"{\"q\":1}"`, 1),
		"an id with a space":       strings.Replace(wholeCall, "toolu_9", "a b", 1),
		"no name":                  strings.Replace(wholeCall, `"name":"search",`, "", 1),
		"an empty name":            strings.Replace(wholeCall, "search", "", 1),
		"a name that is a number":  strings.Replace(wholeCall, `"search"`, "7", 1),
		"a caller without a type":  strings.Replace(wholeCall, `{"type":"direct"}`, "{}", 1),
		"a caller that is a word":  strings.Replace(wholeCall, `{"type":"direct"}`, `"direct"`, 1),
		"two blocks with one id":   wholeCall + "," + wholeCall,
		"Type beside type":         strings.Replace(`{"type":"text","text":"a"}`, "}", `,"Type":"tool_use"}`, 1),
		"Input in a text":          `{"type":"text","text":"a","INPUT":{}}`,
		"text with bad input":      `{"type":"text","text":"a","input":{"a":1,"a":2}}`,
		"no type":                  `{"text":"a"}`,
		"a type that is a number":  `{"type":1,"text":"a"}`,
		"text without text":        `{"type":"text"}`,
		"text that is null":        `{"type":"text","text":null}`,
		"citations that are words": `{"type":"text","text":"","citations":"a"}`,
		"an unknown block":         `{"type":"shell_use","id":"a","name":"sh","input":{}}`,
		"TOOL_USE":                 strings.Replace(wholeCall, "tool_use", "TOOL_USE", 1),
		"a block that is a string": `"tool_use"`,
		"a block that is null":     `null`,
	} {
		if r, err := readWhole(message(block), options{}); err == nil {
			t.Errorf("%s: read as %s", name, describe(r))
		}
	}
	good := string(message(wholeCall))
	for name, change := range map[string][2]string{
		"another type":                {`"type":"message"`, `"type":"completion"`},
		"another role":                {`"assistant"`, `"user"`},
		"no content":                  {`"content":[` + wholeCall + `],`, ""},
		"content that is a string":    {`[` + wholeCall + `]`, `"hello"`},
		"content twice":               {`"content":[`, `"content":[],"content":[`},
		"Content":                     {`"content":[`, `"Content":[],"content":[`},
		"no reason":                   {`"stop_reason":"tool_use"`, `"stop_reason":null`},
		"a reason that is a sentence": {`"stop_reason":"tool_use"`, `"stop_reason":"call a tool"`},
		"bytes behind it":             {`"output_tokens":1}}`, `"output_tokens":1}} {}`},
		"no JSON":                     {`"id"`, `id`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s: nothing was changed", name)
		}
		if r, err := readWhole([]byte(bad), options{}); err == nil {
			t.Errorf("%s: read as %s", name, describe(r))
		}
	}
	if _, err := readWhole([]byte(good), options{}); err != nil {
		t.Error(err)
	}
}

// hostile are streams that break the rules of the wire. None may become a reply.
var hostile = map[string][]string{
	"nothing":                             {},
	"only ping":                           {"ping"},
	"no message_start":                    {lineTool0, lineArgs0, lineStop0, lineToolUse, lineStop},
	"two message_starts":                  {lineStart, lineStart, lineTool0, lineArgs0, lineStop0, lineToolUse, lineStop},
	"message_start after a call":          {lineStart, lineTool0, lineArgs0, lineStop0, lineStart, lineTool0, lineArgs0, lineStop0, lineToolUse, lineStop},
	"message_start without a message":     {"message_start", lineTool0, lineStop0, lineToolUse, lineStop},
	"message_start of a user":             {strings.Replace(lineStart, "assistant", "user", 1), lineToolUse, lineStop},
	"a call and content in message_start": {startOf(wholeCall, "null"), lineTool0, lineStop0, lineToolUse, lineStop},
	"content in message_start, a call at the next index": {startOf(wholeCall, "null"), lineTool1, lineStop1, lineToolUse, lineStop},
	"a call after a reason in message_start":             {startOf("", `"tool_use"`), lineTool0, lineStop0, lineStop},
	"two reasons":                                        {startOf(wholeCall, `"end_turn"`), lineToolUse, lineStop},
	"two calls with one id in message_start":             {startOf(wholeCall+","+wholeCall, `"tool_use"`), lineStop},
	"an unknown block in message_start":                  {startOf(`{"type":"new_use","id":"a","name":"b","input":{}}`, `"tool_use"`), lineStop},
	"an index that does not rise":                        {lineStart, lineTool1, lineArgs1, lineStop1, strings.ReplaceAll(strings.ReplaceAll(lineTool1, `"index":1`, `"index":0`), "toolu_1", "toolu_2"), lineToolUse, lineStop},
	"a gap":                                              {lineStart, lineText, lineStop0, tool("2", "toolu_1", "{}"), lineToolUse, lineStop},
	"an index twice":                                     {lineStart, lineText, lineStop0, lineTool0, lineArgs0, lineStop0, lineToolUse, lineStop},
	"an index below 0":                                   {lineStart, tool("-1", "toolu_1", "{}"), lineToolUse, lineStop},
	"an index of 0.0":                                    {lineStart, tool("0.0", "toolu_1", "{}"), lineStop0, lineToolUse, lineStop},
	"an index that is a string":                          {lineStart, tool(`"0"`, "toolu_1", "{}"), lineStop0, lineToolUse, lineStop},
	"a huge index":                                       {lineStart, tool("99999999999999999999", "toolu_1", "{}"), lineStop0, lineToolUse, lineStop},
	"no index":                                           {lineStart, strings.Replace(lineTool0, `"index":0,`, "", 1), lineStop0, lineToolUse, lineStop},
	"index twice in one event":                           {lineStart, strings.Replace(lineTool0, `"index":0,`, `"index":0,"index":0,`, 1), lineStop0, lineToolUse, lineStop},
	"Index beside index":                                 {lineStart, strings.Replace(lineTool0, `"index":0,`, `"index":0,"Index":1,`, 1), lineStop0, lineToolUse, lineStop},
	"a delta before its block":                           {lineStart, lineArgs0, lineTool0, lineStop0, lineToolUse, lineStop},
	"a delta of another block":                           {lineStart, lineTool0, lineArgs1, lineStop0, lineToolUse, lineStop},
	"a delta after the stop":                             {lineStart, lineTool0, lineStop0, lineArgs0, lineToolUse, lineStop},
	"a delta of a block before":                          {lineStart, lineText, lineStop0, lineTool1, lineHello, lineStop1, lineToolUse, lineStop},
	"a text delta of a block before":                     {lineStart, lineText, lineHello, lineStop0, strings.Replace(lineText, `"index":0`, `"index":1`, 1), lineHello, lineStop1, lineEndTurn, lineStop},
	"a delta without a type":                             {lineStart, lineTool0, `content_block_delta {"type":"content_block_delta","index":0,"delta":{"partial_json":"{}"}}`, lineStop0, lineToolUse, lineStop},
	"a delta without a delta":                            {lineStart, lineTool0, `content_block_delta {"type":"content_block_delta","index":0}`, lineStop0, lineToolUse, lineStop},
	"a delta of an unknown type":                         {lineStart, lineTool0, strings.Replace(lineArgs0, "input_json_delta", "input_delta", 1), lineStop0, lineToolUse, lineStop},
	"Partial_JSON beside partial_json":                   {lineStart, lineTool0, strings.Replace(lineArgs0, `"partial_json"`, `"Partial_JSON":"{}","partial_json"`, 1), lineStop0, lineToolUse, lineStop},
	"partial_json twice":                                 {lineStart, lineTool0, strings.Replace(lineArgs0, `"partial_json"`, `"partial_json":"{}","partial_json"`, 1), lineStop0, lineToolUse, lineStop},
	"partial_json that is an object":                     {lineStart, lineTool0, `content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":{}}}`, lineStop0, lineToolUse, lineStop},
	"a delta without partial_json":                       {lineStart, lineTool0, `content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta"}}`, lineStop0, lineToolUse, lineStop},
	"a text delta in a call":                             {lineStart, lineTool0, lineHello, lineStop0, lineToolUse, lineStop},
	"input in a text":                                    {lineStart, lineText, lineArgs0, lineStop0, lineToolUse, lineStop},
	"thinking in a text":                                 {lineStart, lineText, `content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a"}}`, lineStop0, lineEndTurn, lineStop},
	"input in the start and in deltas":                   {lineStart, tool("0", "toolu_1", `{"q":0}`), lineArgs0, lineStop0, lineToolUse, lineStop},
	"the same input in both":                             {lineStart, tool("0", "toolu_1", `{"q":1}`), lineArgs0, lineStop0, lineToolUse, lineStop},
	"a start with input under another name":              {lineStart, strings.Replace(lineTool0, `"input":{}`, `"input":{},"arguments":{"q":1}`, 1), lineStop0, lineToolUse, lineStop},
	"a start with nothing but another name":              {lineStart, strings.Replace(lineTool0, `"input":{}`, `"parameters":{"q":1}`, 1), lineStop0, lineToolUse, lineStop},
	"a start with input under a name of a server's own":  {lineStart, strings.Replace(lineTool0, `"input":{}`, `"input":{ },"tool_input":{"q":1}`, 1), lineStop0, lineToolUse, lineStop},
	"one that is a text":                                 {lineStart, strings.Replace(lineTool0, `"input":{}`, `"Parameters":"{\"q\":1}"`, 1), strings.Replace(lineArgs0, `{\"q\":1}`, `{}`, 1), lineStop0, lineToolUse, lineStop},
	"one of another type of block":                       {lineStart, strings.Replace(lineTool0, `"input":{}`, `"content":[{"q":1}]`, 1), lineStop0, lineToolUse, lineStop},
	"input beside partial_json":                          {lineStart, lineTool0, strings.Replace(lineArgs0, `"partial_json":"{\"q\":1}"`, `"partial_json":"","input":{"q":1}`, 1), lineStop0, lineToolUse, lineStop},
	"input beside a delta":                               {lineStart, lineTool0, strings.Replace(lineArgs0, `"partial_json":"{\"q\":1}"}`, `"partial_json":""},"arguments":{"q":1}`, 1), lineStop0, lineToolUse, lineStop},
	"input beside a block":                               {lineStart, strings.Replace(lineTool0, `"index":0`, `"index":0,"input":{"q":1}`, 1), lineStop0, lineToolUse, lineStop},
	"input beside a delta, as a text":                    {lineStart, lineTool0, strings.Replace(lineArgs0, `"partial_json":"{\"q\":1}"}`, `"partial_json":""},"p":" {\"q\":1}"`, 1), lineStop0, lineToolUse, lineStop},
	"input in a block that stops":                        {lineStart, lineTool0, strings.Replace(lineStop0, `"index":0`, `"index":0,"content_block":{"type":"tool_use","input":{"q":1}}`, 1), lineToolUse, lineStop},
	"a piece of input under another name":                {lineStart, lineTool0, strings.Replace(lineArgs0, `{\"q\":1}`, `{\"q\":1`, 1), strings.Replace(lineArgs0, `"partial_json":"{\"q\":1}"`, `"partial_json":"","arguments":"2"`, 1), strings.Replace(lineArgs0, `{\"q\":1}`, `}`, 1), lineStop0, lineToolUse, lineStop},
	"one beside two pieces of the same form":             {lineStart, lineTool0, strings.Replace(lineArgs0, `"partial_json":"{\"q\":1}"`, `"arguments":"2","partial_json":"{\"q\":1"`, 1), strings.Replace(lineArgs0, `"partial_json":"{\"q\":1}"`, `"arguments":"2","partial_json":""`, 1), strings.Replace(lineArgs0, `{\"q\":1}`, `}`, 1), lineStop0, lineToolUse, lineStop},
	"one beside a delta":                                 {lineStart, lineTool0, strings.Replace(lineArgs0, `{\"q\":1}`, `{\"q\":1`, 1), strings.Replace(lineArgs0, `"partial_json":"{\"q\":1}"}`, `"partial_json":""},"input":"2"`, 1), strings.Replace(lineArgs0, `{\"q\":1}`, `}`, 1), lineStop0, lineToolUse, lineStop},
	"a stop with another input":                          {lineStart, lineTool0, lineArgs0, stopOf(strings.Replace(wholeCall, "toolu_9", "toolu_1", 1), `{"q":1}`, `{"q":2}`), lineToolUse, lineStop},
	"a stop with another name":                           {lineStart, lineTool0, lineArgs0, stopOf(strings.Replace(wholeCall, "toolu_9", "toolu_1", 1), "search", "wipe"), lineToolUse, lineStop},
	"a stop with another id":                             {lineStart, lineTool0, lineArgs0, stopOf(wholeCall), lineToolUse, lineStop},
	"a stop with another caller":                         {lineStart, lineTool0, lineArgs0, stopOf(strings.Replace(wholeCall, "toolu_9", "toolu_1", 1), "direct", "code_execution_20250825"), lineToolUse, lineStop},
	"a stop with another type":                           {lineStart, lineText, lineHello, stopOf(wholeCall), lineToolUse, lineStop},
	"a stop with another text":                           {lineStart, lineText, lineHello, stopOf(`{"type":"text","text":"Hi"}`), lineEndTurn, lineStop},
	"a call in message_delta":                            {lineStart, lineText, lineHello, lineStop0, strings.Replace(lineToolUse, `"stop_reason"`, `"content":[`+wholeCall+`],"stop_reason"`, 1), lineStop},
	"a call beside its delta":                            {lineStart, lineText, lineHello, lineStop0, strings.Replace(lineToolUse, `"delta"`, `"content":[`+wholeCall+`],"delta"`, 1), lineStop},
	"a block beside its delta":                           {lineStart, lineText, lineHello, lineStop0, strings.Replace(lineToolUse, `"delta"`, `"content_block":`+wholeCall+`,"delta"`, 1), lineStop},
	"a call in message_stop":                             {lineStart, lineText, lineHello, lineStop0, lineToolUse, `message_stop {"type":"message_stop","message":{"content":[{"type":"text","text":"Hello"},` + wholeCall + `]}}`},
	"another call in message_stop":                       {lineStart, lineTool0, lineArgs0, lineStop0, lineToolUse, `message_stop {"type":"message_stop","message":{"content":[` + wholeCall + `]}}`},
	"no call in message_stop, where there was one":       {lineStart, lineText, lineHello, lineStop0, lineTool1, lineArgs1, lineStop1, lineToolUse, `message_stop {"type":"message_stop","message":{"content":[{"type":"text","text":"Hello"}]}}`},
	"tool_calls in message_start":                        {strings.Replace(lineStart, `"content"`, `"tool_calls":[{"id":"a"}],"content"`, 1), lineText, lineHello, lineStop0, lineEndTurn, lineStop},
	"toolCalls in a message_delta":                       {lineStart, lineText, lineHello, lineStop0, strings.Replace(lineToolUse, `"stop_reason"`, `"toolCalls":[{"id":"a"}],"stop_reason"`, 1), lineStop},
	"tool_use beside a delta":                            {lineStart, lineText, strings.Replace(lineHello, `"index"`, `"tool_use":{"id":"a"},"index"`, 1), lineStop0, lineToolUse, lineStop},
	"tool_calls in a text":                               {lineStart, strings.Replace(lineText, `"text":""`, `"text":"","tool_calls":[{"id":"a"}]`, 1), lineHello, lineStop0, lineToolUse, lineStop},
	"tool_calls in a delta":                              {lineStart, lineText, strings.Replace(lineHello, `"text":"Hello"`, `"text":"Hello","tool_calls":[{"id":"a"}]`, 1), lineStop0, lineToolUse, lineStop},
	"a delta beside a block that begins":                 {lineStart, strings.Replace(lineTool0, `"index"`, `"delta":{"type":"input_json_delta","partial_json":"{}"},"index"`, 1), lineStop0, lineToolUse, lineStop},
	"a delta in the stop of a block":                     {lineStart, lineTool0, strings.Replace(lineStop0, `"index"`, `"delta":{"type":"input_json_delta","partial_json":"{}"},"index"`, 1), lineToolUse, lineStop},
	"a piece of input in message_delta":                  {lineStart, lineTool0, lineStop0, strings.Replace(lineToolUse, `"stop_reason"`, `"partial_json":"{}","stop_reason"`, 1), lineStop},
	"a piece of input in a ping":                         {lineStart, lineTool0, lineArgs0, `ping {"type":"ping","partial_json":"x"}`, lineStop0, lineToolUse, lineStop},
	"another reason in message_stop":                     {lineStart, lineTool0, lineArgs0, lineStop0, lineToolUse, `message_stop {"type":"message_stop","message":{"stop_reason":"max_tokens"}}`},
	"no end within a block":                              {lineStart, lineTool0, lineArgs0},
	"no end after a block":                               {lineStart, lineTool0, lineArgs0, lineStop0},
	"no end after a reason in message_start":             {startOf("", `"end_turn"`)},
	"[DONE] after a block":                               {lineStart, lineTool0, lineArgs0, lineStop0, "data [DONE]"},
	"a start without a name":                             {lineStart, strings.Replace(lineTool0, `"name":"search",`, "", 1), lineArgs0, lineStop0, lineToolUse, lineStop},
	"a start without a block":                            {lineStart, `content_block_start {"type":"content_block_start","index":0}`, lineStop0, lineToolUse, lineStop},
	"a start of an unknown type":                         {lineStart, strings.Replace(lineTool0, `"tool_use"`, `"tool_use_v2"`, 1), lineStop0, lineToolUse, lineStop},
	"Type beside type in a block":                        {lineStart, strings.Replace(lineText, `"text":""`, `"text":"","TYPE":"tool_use"`, 1), lineStop0, lineToolUse, lineStop},
	"a folded letter in a name":                          {lineStart, strings.Replace(lineText, `"text":""`, `"text":"","ſignature":"a"`, 1), lineStop0, lineToolUse, lineStop},
	"one id in two blocks":                               {lineStart, lineTool0, lineArgs0, lineStop0, lineTool1, lineArgs1, lineStop1, lineToolUse, lineStop},
	"a second start at the index of an open block":       {lineStart, lineText, lineTool0, lineArgs0, lineStop0, lineToolUse, lineStop},
	"a delta of a stopped block beside an open one":      {lineStart, lineText, lineTool1, lineStop0, lineHello, lineArgs1, lineStop1, lineToolUse, lineStop},
	"a text that goes on behind a later one":             {lineStart, lineText, lineText1, strings.Replace(lineHello, `"index":0`, `"index":1`, 1), lineHello, lineStop0, lineStop1, lineEndTurn, lineStop},
	"one of two open calls without a stop":               {lineStart, lineTool0, lineArgs0, strings.Replace(lineTool1, "toolu_1", "toolu_2", 1), lineArgs1, lineStop1, lineToolUse, lineStop},
	"two stops of a block":                               {lineStart, lineTool0, lineArgs0, lineStop0, lineStop0, lineToolUse, lineStop},
	"a stop of another block":                            {lineStart, lineTool0, lineArgs0, lineStop1, lineToolUse, lineStop},
	"a stop without a block":                             {lineStart, lineStop0, lineToolUse, lineStop},
	"no stop of a block":                                 {lineStart, lineTool0, lineArgs0, lineToolUse, lineStop},
	"message_stop within a block":                        {lineStart, lineTool0, lineArgs0, lineStop},
	"no reason":                                          {lineStart, lineTool0, lineArgs0, lineStop0, lineStop},
	"a reason of null":                                   {lineStart, lineTool0, lineArgs0, lineStop0, strings.Replace(lineToolUse, `"tool_use"`, "null", 1), lineStop},
	"two different reasons":                              {lineStart, lineTool0, lineArgs0, lineStop0, lineEndTurn, lineToolUse, lineStop},
	"a reason twice in one event":                        {lineStart, lineTool0, lineStop0, strings.Replace(lineToolUse, `"stop_reason"`, `"stop_reason":"end_turn","stop_reason"`, 1), lineStop},
	"a call after the reason":                            {lineStart, lineText, lineStop0, lineToolUse, lineTool1, lineArgs1, lineStop1, lineStop},
	"a call after the end":                               {lineStart, lineText, lineStop0, lineEndTurn, lineStop, lineTool1, lineArgs1, lineStop1, lineToolUse, lineStop},
	"two ends":                                           {lineStart, lineTool0, lineStop0, lineToolUse, lineStop, lineStop},
	"an error event":                                     {lineStart, lineTool0, lineArgs0, lineStop0, `error {"type":"error","error":{"type":"overloaded_error","message":"a"}}`, lineToolUse, lineStop},
	"an unknown event":                                   {lineStart, lineTool0, lineStop0, `tool_call {"type":"tool_call","name":"search"}`, lineToolUse, lineStop},
	"a name that differs from the type":                  {lineStart, strings.Replace(lineTool0, "content_block_start ", "ping ", 1), lineToolUse, lineStop},
	"an event without a type":                            {lineStart, `content_block_stop {"index":0}`, lineToolUse, lineStop},
	"an event that is an array":                          {lineStart, `ping [{"type":"ping"}]`, lineToolUse, lineStop},
	"an event that is no JSON":                           {lineStart, `content_block_start {"type":`, lineToolUse, lineStop},
	"two values in one event":                            {lineStart, lineTool0 + ` {}`, lineStop0, lineToolUse, lineStop},
	"half of a pair in a text":                           {lineStart, lineText, strings.Replace(lineHello, "Hello", `\ud83d`, 1), lineStop0, lineEndTurn, lineStop},
	"bytes that are no UTF-8":                            {lineStart, lineText, strings.Replace(lineHello, "Hello", "\xff", 1), lineStop0, lineEndTurn, lineStop},
	"no UTF-8 in a second delta":                         {lineStart, lineText, lineHello, strings.Replace(lineHello, "Hello", "\xff", 1), lineStop0, lineEndTurn, lineStop},
	"a control character in a second delta":              {lineStart, lineText, lineHello, strings.Replace(lineHello, "Hello", "\x01", 1), lineStop0, lineEndTurn, lineStop},
	"a member in the end of a second delta":              {lineStart, lineTool0, lineArgs0, strings.Replace(lineArgs0, `"}}`, `","partial_json":"x"}}`, 1), lineStop0, lineToolUse, lineStop},
	"two signatures":                                     {lineStart, thinkingStart, signature, signature, lineStop0, lineEndTurn, lineStop},
	"a signature in the start and in a delta":            {lineStart, strings.Replace(thinkingStart, `"signature":""`, `"signature":"s"`, 1), signature, lineStop0, lineEndTurn, lineStop},
	"bad JSON for a hosted call":                         {lineStart, strings.Replace(lineTool0, "tool_use", "server_tool_use", 1), strings.Replace(lineArgs0, `{\"q\":1}`, `{`, 1), lineStop0, lineEndTurn, lineStop},
	"usage of too many members":                          {lineStart, strings.Replace(lineEndTurn, `"output_tokens":9`, `"output_tokens":9`+manyMembers(), 1), lineStop},
}

const (
	lineText1     = `content_block_start {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`
	thinkingStart = `content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`
	signature     = `content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`
)

// stopOf is the end of the first block, which states the block again, with other words in it.
func stopOf(block string, words ...string) string {
	return strings.Replace(lineStop0, `"index":0`, `"index":0,"content_block":`+strings.NewReplacer(words...).Replace(block), 1)
}

func manyMembers() string {
	var b strings.Builder
	for i := range 100 {
		b.WriteString(`,"x` + strings.Repeat("y", i) + `":1`)
	}
	return b.String()
}

// TestHostileStreams holds that no stream that breaks the rules is a reply, and that none shows
// a byte of a call.
func TestHostileStreams(t *testing.T) {
	if len(hostile) < 60 {
		t.Errorf("%d shapes", len(hostile))
	}
	for name, lines := range hostile {
		got := readStream(streamOf(lines...), options{})
		if got.err == nil {
			t.Errorf("%s: became a reply: %s", name, describe(got.reply))
		}
		if strings.Contains(got.shown, "tool_use") || strings.Contains(got.shown, "partial_json") {
			if name != "bad JSON for a hosted call" { // which the face refuses at its start
				t.Errorf("%s: a call was shown: %s", name, got.shown)
			}
		}
	}
}

// TestHarmless: what decides nothing of a reply may be absent, blank or odd, and clients get what they want of it.
func TestHarmless(t *testing.T) {
	text := []string{lineStart, lineText, lineHello, lineStop0, lineEndTurn, lineStop}
	call := []string{lineStart, lineTool0, lineArgs0, lineStop0, lineToolUse, lineStop}
	for name, test := range map[string]struct {
		lines     []string
		old, made string
	}{
		"no id":                       {text, `"id":"msg_1",`, ``},
		"an empty id":                 {text, `"id":"msg_1"`, `"id":""`},
		"an id that is a number":      {text, `"id":"msg_1"`, `"id":1`},
		"an error of nothing":         {text, `"id":"msg_1"`, `"id":"msg_1","error":{}`},
		"a blank error":               {text, `"id":"msg_1"`, `"id":"msg_1","error":""`},
		"an error of false":           {text, `"id":"msg_1"`, `"id":"msg_1","error":false`},
		"an id with a space":          {text, `"id":"msg_1"`, `"id":"a b"`},
		"no model":                    {text, `,"model":"claude-x"`, ``},
		"a model of null":             {text, `"model":"claude-x"`, `"model":null`},
		"no type":                     {text, `"type":"message",`, ``},
		"no role":                     {text, `"role":"assistant",`, ``},
		"a role of null":              {text, `"role":"assistant"`, `"role":null`},
		"no content":                  {text, `"content":[],`, ``},
		"content of null":             {text, `"content":[]`, `"content":null`},
		"nothing":                     {text, strings.TrimSuffix(strings.TrimPrefix(lineStart, `message_start {"type":"message_start","message":`), "}"), `{}`},
		"a blank reason":              {text, `"stop_reason":null`, `"stop_reason":""`},
		"text of null":                {text, `"text","text":""`, `"text","text":null`},
		"no text":                     {text, `"text","text":""`, `"text"`},
		"usage alone":                 {text, `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`, `"usage":{"output_tokens":9}}` + "\n" + lineEndTurn},
		"a delta of null":             {text, `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`, `"delta":null}` + "\n" + lineEndTurn},
		"a blank reason before it":    {text, `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`, `"delta":{"stop_reason":""}}` + "\n" + lineEndTurn},
		"a ping of nothing":           {text, `"index":0,"content_block":{"type":"text","text":""}}`, `"index":0,"content_block":{"type":"text","text":""}}` + "\nping {}"},
		"a call without an id":        {call, `"id":"toolu_1",`, ``},
		"a call with a blank id":      {call, `"id":"toolu_1"`, `"id":""`},
		"a call with an id of null":   {call, `"id":"toolu_1"`, `"id":null`},
		"a call with a signature":     {call, `"id":"toolu_1"`, `"id":"toolu_1__thought__` + strings.Repeat("aB+/", 999) + `="`},
		"a call without id and input": {call, `"id":"toolu_1","name":"search","input":{}`, `"name":"search"`},
	} {
		stream := strings.Join(test.lines, "\n")
		odd := strings.Replace(stream, test.old, test.made, 1)
		if odd == stream {
			t.Fatalf("%s: nothing was changed", name)
		}
		got := readStream(streamOf(strings.Split(odd, "\n")...), options{})
		if got.err != nil {
			t.Errorf("%s: %v", name, got.err)
			continue
		}
		parts, calls := got.reply.Answers[0].Parts, callsOf(got.reply)
		if len(parts) != 1 || len(calls) == 0 && string(parts[0].Text) != "Hello" ||
			len(calls) > 0 && (string(calls[0].Call.Arguments) != `{"q":1}` || !strings.HasPrefix(calls[0].Call.ID, "toolu_")) {
			t.Errorf("%s: became %s", name, describe(got.reply))
		}
		all := string(whole(got.reply)) + got.asSent(t)
		for _, want := range []string{`"id":"msg_`, `"type":"message"`, `"role":"assistant"`, `"model":"claude-x"`, `"content":[]`, `"content":[{"`, `"stop_reason":null`, `"stop_sequence":null`, `"usage":{`} {
			if !strings.Contains(all, want) {
				t.Errorf("%s: a client gets no %s: %s", name, want, all)
			}
		}
		if again := readStream(strings.NewReader(got.asSent(t)), options{}); again.err != nil || again.reply.ID != got.reply.ID || len(calls) > 0 && callsOf(again.reply)[0].Call.ID != calls[0].Call.ID {
			t.Errorf("%s: what a client is sent is another reply: %v", name, again.err)
		}
	}
	whole := func(block string) []byte {
		_, m, _ := strings.Cut(startOf(block, `"tool_use"`), `"message":`)
		return []byte(strings.NewReplacer(`"id":"msg_1",`, "", `"model":"claude-x",`, "", `"type":"message","role":"assistant",`, "").Replace(strings.TrimSuffix(m, "}")))
	}
	for _, input := range []string{`{"q":1}`, `{"q":1,"q":2}`} { // the second is refused by the kernel
		block := strings.NewReplacer(`"id":"toolu_9",`, "", `{"q":1}`, input).Replace(wholeCall)
		r, err := readWhole(whole(block), options{})
		if err != nil || string(callsOf(r)[0].Call.Arguments) != input || !strings.Contains(string(callsOf(r)[0].Raw), `"id":"toolu_`) {
			t.Errorf("whole: %v, %s", err, describe(r))
		}
	}
}

// TestEndTurn: calls count also with the stop_reason end_turn, but for those of programs, and where the end is not whole.
func TestEndTurn(t *testing.T) {
	program := strings.Replace(wholeCall, `"direct"`, `"code_execution_20250825","tool_id":"s"`, 1)
	for name, test := range map[string]struct {
		lines []string
		count bool
	}{
		"in deltas":              {[]string{lineStart, lineTool0, lineArgs0, lineStop0, lineEndTurn, lineStop}, true},
		"with a direct caller":   {[]string{startOf(wholeCall, `"end_turn"`), lineStop}, true},
		"with [DONE] as the end": {[]string{lineStart, lineTool0, lineArgs0, lineStop0, lineEndTurn, "data [DONE]"}, true},
		"without message_stop":   {[]string{lineStart, lineTool0, lineArgs0, lineStop0, lineEndTurn}, false},
		"without its own end":    {[]string{lineStart, lineTool0, lineArgs0, lineEndTurn, lineStop}, false},
		"of a program":           {[]string{startOf(program, `"end_turn"`), lineStop}, false},
		"with another end":       {[]string{lineStart, lineTool0, lineArgs0, lineStop0, strings.Replace(lineEndTurn, "end_turn", "stop_sequence", 1), lineStop}, false},
	} {
		got := readStream(streamOf(test.lines...), options{programs: true})
		if got.err != nil || len(callsOf(got.reply)) != 1 || (got.reply.Answers[0].RefuseCalls == nil) != test.count {
			t.Errorf("%s: %v, %s", name, got.err, describe(got.reply))
		}
	}
	_, body, _ := strings.Cut(startOf(program, `"end_turn"`), `"message":`)
	if r, err := readWhole([]byte(strings.TrimSuffix(body, "}")), options{programs: true}); err != nil || r.Answers[0].RefuseCalls == nil {
		t.Errorf("whole, of a program: %v, %s", err, describe(r))
	}
}

// TestTruncated cuts streams with calls at every byte: only the whole stream is a reply, and one that
// lacks nothing but message_stop.
func TestTruncated(t *testing.T) {
	for name, lines := range map[string][]string{
		"deltas":        {lineStart, lineText, lineHello, lineStop0, lineTool1, lineArgs1, lineStop1, lineToolUse, lineStop},
		"message_start": {startOf(wholeCall, `"tool_use"`), lineStop},
	} {
		stream := events(lines...)
		end := strings.LastIndex(stream, "}") // the last event is complete
		for at := range end + 1 {
			got := readStream(strings.NewReader(stream[:at]), options{})
			rest, whole := strings.CutPrefix(stream[:at], events(lines[:len(lines)-1]...)) // a line without data is no event
			if (got.err == nil) != (whole && (rest == "" || rest == "event: message_stop\n")) {
				t.Fatalf("%s, cut at %d of %d: became a reply", name, at, len(stream))
			}
			if strings.Contains(got.shown, "tool_use") {
				t.Fatalf("%s, cut at %d: a call was shown", name, at)
			}
		}
		if got := readStream(strings.NewReader(stream), options{}); got.err != nil {
			t.Errorf("%s: %v", name, got.err)
		}
	}
}

// TestAfterTheEnd: pings and one word of some providers may follow message_stop.
func TestAfterTheEnd(t *testing.T) {
	for _, more := range []string{"ping", "data [DONE]"} {
		got := readStream(streamOf(lineStart, lineText, lineHello, lineStop0, lineEndTurn, lineStop, more), options{})
		if got.err != nil {
			t.Errorf("%s: %v", more, got.err)
		}
	}
}

// TestErrors tells the kinds of errors apart.
func TestErrors(t *testing.T) {
	var provider *turns.ProviderError
	got := readStream(streamOf(lineStart, `error {"type":"error","error":{"type":"overloaded_error","message":"a"}}`), options{})
	if !errors.As(got.err, &provider) || provider.Failure.Type != "overloaded_error" || !strings.Contains(string(provider.Body), `"message":"a"`) {
		t.Errorf("an error event: %v", got.err)
	}
	for _, data := range []string{`{"type":"error","error":{"type":"api_error","message":"a"}}`, `{"error":{"type":"api_error","message":"a"}}`} {
		for how, err := range map[string]error{
			"named": readStream(streamOf(lineStart, "error "+data), options{}).err, "unnamed": readStream(strings.NewReader("data: "+data+"\n\n"), options{}).err,
			"whole": func() error { _, err := readWhole([]byte(data), options{}); return err }(),
		} {
			if !errors.As(err, &provider) || provider.Failure.Type != "api_error" || string(provider.Body) != data {
				t.Errorf("%s, %s: %v", data, how, err)
			}
		}
	}
	for body, want := range map[string]string{
		`{"detail":"insufficient balance"}`:                                           "insufficient balance",
		`{"type":"message","role":"assistant","content":null,"message":"overloaded"}`: "overloaded",
		`{"type":"failure","message":"overloaded","content":[]}`:                      "overloaded",
	} {
		if _, err := readWhole([]byte(body), options{}); !errors.As(err, &provider) || provider.Body != nil || provider.Failure.Message != want {
			t.Errorf("%s: %v", body, err)
		}
	}
	if got := readStream(strings.NewReader("data: {\"detail\":\"insufficient balance\"}\n\n"), options{}); !errors.As(got.err, &provider) || provider.Failure.Message != "insufficient balance" {
		t.Errorf("a reason in a stream: %v", got.err)
	}
	if got := readStream(streamOf(lineStart, lineText), options{}); !errors.Is(got.err, turns.ErrIncomplete) {
		t.Errorf("a stream that breaks off: %v", got.err)
	}
	block := strings.Replace(lineText, `"type":"text","text":""`, `"type":"shell","command":["ls"]`, 1)
	delta := strings.Replace(lineHello, `"type":"text_delta","text":"Hello"`, `"type":"shell_delta","more":1`, 1)
	unknown := []string{lineStart, block, delta, lineStop0, `weather {"type":"weather"}`, lineEndTurn, lineStop}
	if got := readStream(streamOf(unknown...), options{}); !errors.Is(got.err, turns.ErrUnknown) {
		t.Errorf("an unknown block: %v", got.err)
	}
	allowed := readStream(streamOf(unknown...), options{unknown: true})
	if allowed.err != nil || !strings.Contains(allowed.shown, `"type":"shell_delta","more":1`) || !strings.Contains(allowed.shown, "event: weather\n") {
		t.Errorf("an unknown block that is allowed: %v, %s", allowed.err, allowed.shown)
	}
}

// TestReadAtOnce holds that each event is told of with what it adds, and of a call nothing but that it begins and ends
// (AM-52).
func TestReadAtOnce(t *testing.T) {
	r := newReader(options{})
	for _, step := range []struct {
		line string
		adds int
	}{
		{lineStart, 0}, {"ping", 1}, {thinkingStart, 1}, {signature, 1}, {lineStop0, 1},
		{strings.Replace(lineText, `"index":0`, `"index":1`, 1), 1}, {strings.Replace(lineHello, `"index":0`, `"index":1`, 1), 1}, {lineStop1, 1},
		{tool("2", "toolu_1", "{}"), 1}, {"ping", 1}, {strings.Replace(lineArgs0, `"index":0`, `"index":2`, 1), 0}, {`content_block_stop {"type":"content_block_stop","index":2}`, 1},
		{strings.Replace(lineText, `"index":0`, `"index":3`, 1), 1}, {strings.Replace(lineHello, `"index":0`, `"index":3`, 1), 1}, {`content_block_stop {"type":"content_block_stop","index":3}`, 1},
		{lineToolUse, 0}, {lineStop, 0},
	} {
		name, data, found := strings.Cut(step.line, " ")
		if !found {
			data = `{"type":"` + name + `"}`
		}
		got, err := r.Event([]byte(name), []byte(data))
		if err != nil || len(got) != step.adds {
			t.Fatalf("%s: %d events, %v; expected %d", step.line, len(got), err, step.adds)
		}
	}
	if err := r.End(); err != nil || len(r.answer.Parts) != 4 {
		t.Errorf("%v, %+v", err, r.answer)
	}
}

// TestGoesOnBehindACall: a client gets what a block brings once, and in its order, where a call begins meanwhile.
func TestGoesOnBehindACall(t *testing.T) {
	hosted := strings.NewReplacer("tool_use", "server_tool_use", "toolu_1", "s").Replace(lineTool0)
	piece := func(text string) string { return strings.Replace(lineArgs0, `{\"q\":1}`, text, 1) }
	unknown := strings.Replace(lineText, `"type":"text","text":""`, `"type":"shell","id":"a"`, 1)
	other := func(n string) string {
		return strings.Replace(lineHello, `"type":"text_delta","text":"Hello"`, `"type":"shell_delta","n":`+n, 1)
	}
	at1 := func(line string) string { return strings.Replace(line, `"index":0`, `"index":1`, 1) }
	const q = `"partial_json":"{\"q\":1}"`
	for name, test := range map[string]struct {
		lines, want []string
	}{
		"a hosted input":               {[]string{hosted, piece(`{\"q\"`), lineTool1, piece(`:1}`), lineStop0, lineStop1}, []string{`"index":0,"delta":{"type":"input_json_delta",` + q}},
		"one without an earlier piece": {[]string{hosted, lineTool1, lineArgs0, lineStop0, lineStop1}, []string{`"index":0,"delta":{"type":"input_json_delta",` + q}},
		"one in front of the call":     {[]string{hosted, piece(`{\"q\"`), piece(`:1}`), lineStop0, lineTool1, lineStop1}, []string{`"index":0,"delta":{"type":"input_json_delta",` + q}},
		"one in the start": {[]string{strings.Replace(hosted, `{}`, `{"q":1}`, 1), piece(""), lineTool1, lineStop0, lineStop1},
			[]string{`"index":0,"delta":{"type":"input_json_delta",` + q}},
		"an unknown block":          {[]string{unknown, other("1"), lineTool1, other("2"), lineStop0, lineStop1}, []string{`"n":1`, `"n":2`}},
		"one in front":              {[]string{unknown, other("1"), other("2"), lineStop0, lineTool1, lineStop1}, []string{`"n":1`, `"n":2`}},
		"one that begins behind it": {[]string{lineTool0, lineStop0, at1(unknown), at1(other("1")), at1(other("2")), lineStop1}, []string{`"n":1`, `"n":2`}},
	} {
		got := readStream(streamOf(append(append([]string{lineStart}, test.lines...), lineToolUse, lineStop)...), options{unknown: true})
		if got.err != nil {
			t.Errorf("%s: %v", name, got.err)
			continue
		}
		sent := got.asSent(t)
		if strings.Count(sent, "content_block_delta\n") != len(test.want) || strings.Count(sent, `"input":{}`) > 2 {
			t.Errorf("%s: a client is sent %s", name, sent)
		}
		for rest, i := sent, 0; i < len(test.want); i++ {
			_, after, found := strings.Cut(rest, test.want[i])
			if rest = after; !found {
				t.Errorf("%s: a client gets no %s in %s", name, test.want[i], sent)
			}
		}
		if strings.Contains(sent, `"type":"shell","id":"a","input"`) {
			t.Errorf("%s: changed: %s", name, sent)
		}
	}
}

// TestUsage adds up the parts of a budget, and keeps the last value of each member.
func TestUsage(t *testing.T) {
	first := strings.Replace(lineStart, `"input_tokens":3`, `"input_tokens":3,"cache_creation_input_tokens":10,"cache_read_input_tokens":100`, 1)
	second := strings.Replace(lineEndTurn, `"output_tokens":9`, `"output_tokens":1000,"input_tokens":null,"server_tool_use":{"web_search_requests":1}`, 1)
	got := readStream(streamOf(first, lineText, lineStop0, second, lineStop), options{})
	if got.err != nil || got.reply.Usage.Tokens != 1113 {
		t.Fatalf("%v, %d tokens", got.err, got.reply.Usage.Tokens)
	}
	const want = `{"input_tokens":3,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1000,"server_tool_use":{"web_search_requests":1}}`
	if string(got.reply.Usage.Raw) != want {
		t.Errorf("%s, expected %s", got.reply.Usage.Raw, want)
	}
}

// TestMembersOfAMessageDelta: a message_delta brings what ends the message. It cannot change who
// the message is of, which readers of the head have taken over already.
func TestMembersOfAMessageDelta(t *testing.T) {
	delta := strings.Replace(lineEndTurn, `"stop_sequence":null`, `"stop_sequence":"x","container":{"id":"c"},"id":{"type":"tool_use"},"model":7,"role":"user","type":[],`+
		`"content":[],"usage":{},"diagnostics":[`+wholeCall+`]`, 1)
	got := readStream(streamOf(lineStart, lineText, lineHello, lineStop0, delta, lineStop), options{})
	if got.err != nil {
		t.Fatal(got.err)
	}
	const head = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[`
	if all := string(whole(got.reply)); strings.Contains(all, "tool_use") || !strings.HasPrefix(all, head) || !strings.Contains(all, `"container":{"id":"c"}`) || !strings.Contains(all, `"stop_sequence":"x"`) {
		t.Errorf("found the message %s", all)
	}
	if sent := got.asSent(t); strings.Contains(sent, "tool_use") || !strings.Contains(sent, head) {
		t.Errorf("a client is sent %s", sent)
	}
}

// TestUnknownMembers: a block is written with the members that its type has, whole and streamed. A
// second set of arguments, or a call within a text, reaches nobody.
func TestUnknownMembers(t *testing.T) {
	const hidden = `{"type":"tool_use","id":"toolu_2","name":"wipe","input":{"x":"HIDDEN"}}`
	for block, want := range map[string]string{
		strings.Replace(wholeCall, `,"caller"`, `,"arguments":"{\"x\":\"HIDDEN\"}","caller"`, 1):                                                          wholeCall,
		strings.Replace(wholeCall, `,"caller"`, `,"partial_json":"HIDDEN","server_name":"HIDDEN","caller"`, 1):                                            wholeCall,
		strings.Replace(wholeCall, `"type":"direct"`, `"type":"direct","input":{"x":"HIDDEN"}`, 1):                                                        wholeCall,
		`{"type":"server_tool_use","id":"s","name":"web_search","input":{},"arguments":"HIDDEN"}`:                                                         `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`,
		`{"type":"mcp_tool_use","id":"s","name":"a","input":{},"server_name":"b","text":"HIDDEN"}`:                                                        `{"type":"mcp_tool_use","id":"s","name":"a","input":{},"server_name":"b"}`,
		`{"type":"text","text":"hi","id":"toolu_2","name":"wipe","input":{"x":"HIDDEN"}}`:                                                                 `{"type":"text","text":"hi"}`,
		`{"type":"text","text":"hi","content":[` + hidden + `],"note":"HIDDEN"}`:                                                                          `{"type":"text","text":"hi"}`,
		`{"type":"text","text":"hi","citations":[` + hidden + `]}`:                                                                                        `{"type":"text","text":"hi","citations":[]}`,
		`{"type":"text","text":"hi","citations":[` + hidden + `,{"type":"char_location","cited_text":"a","call":` + hidden + `,"url":[` + hidden + `]}]}`: `{"type":"text","text":"hi","citations":[{"type":"char_location","cited_text":"a"}]}`,
		`{"type":"thinking","thinking":"hm","signature":"s","text":"HIDDEN"}`:                                                                             `{"type":"thinking","thinking":"hm","signature":"s"}`,
		`{"type":"redacted_thinking","data":"a","thinking":"HIDDEN"}`:                                                                                     `{"type":"redacted_thinking","data":"a"}`,
		`{"type":"compaction","content":"a","input":` + hidden + `}`:                                                                                      `{"type":"compaction","content":"a"}`,
		`{"type":"fallback","from":{"model":"a","call":` + hidden + `},"to":` + hidden + `}`:                                                              `{"type":"fallback","from":{"model":"a"},"to":{}}`,
	} {
		_, body, _ := strings.Cut(startOf(block, `"end_turn"`), `"message":`)
		whole, err := readWhole([]byte(strings.TrimSuffix(body, "}")), options{})
		if err != nil {
			t.Errorf("%s: %v", block, err)
			continue
		}
		streamed := readStream(streamOf(lineStart, `content_block_start {"type":"content_block_start","index":0,"content_block":`+block+`}`, lineStop0, lineEndTurn, lineStop), options{})
		if streamed.err != nil {
			t.Errorf("%s: streamed: %v", block, streamed.err)
			continue
		}
		for form, r := range map[string]*turns.Reply{"whole": whole, "streamed": streamed.reply} {
			if got := string(r.Answers[0].Parts[0].Raw); got != want {
				t.Errorf("%s: %s is written as %s, expected %s", block, form, got, want)
			}
		}
		if strings.Contains(streamed.shown+streamed.asSent(t), "HIDDEN") {
			t.Errorf("%s: shown: %s", block, streamed.shown)
		}
	}
	citation := `content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","note":"HIDDEN","citation":`
	got := readStream(streamOf(lineStart, lineText, citation+hidden+`}}`, citation+`{"type":"page_location","x":`+hidden+`}}}`, lineHello, lineStop0, lineEndTurn, lineStop), options{})
	if want := `"citations":[{"type":"page_location"}]`; got.err != nil || strings.Contains(got.shown, "HIDDEN") || !strings.Contains(string(got.reply.Answers[0].Parts[0].Raw), want) {
		t.Errorf("citations in deltas: %v, %s, %s", got.err, got.shown, describe(got.reply))
	}
}

// TestUsageOutOfForm: usage decides nothing of an answer. What cannot be read of it is not taken, and
// clients get the counts that they want.
func TestUsageOutOfForm(t *testing.T) {
	const usage = `,"usage":{"input_tokens":3,"output_tokens":1}`
	for begun, want := range map[string]string{
		"":              `{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":9}`,
		`,"usage":null`: `{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":9}`,
		`,"usage":[]`:   `{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":9}`,
		`,"usage":{"input_tokens":-3,"output_tokens":1.5,"tier":"a"}`: `{"tier":"a","output_tokens":9}`,
		`,"usage":{"input_tokens":"3","output_tokens":2}`:             `{"output_tokens":9}`,
	} {
		got := readStream(streamOf(strings.Replace(lineStart, usage, begun, 1), lineText, lineHello, lineStop0, lineEndTurn, lineStop), options{})
		if got.err != nil || string(got.reply.Usage.Raw) != want {
			t.Errorf("%s: %v, %+v", begun, got.err, got.reply)
		}
	}
	without := strings.Replace(lineToolUse, `,"usage":{"output_tokens":9}`, "", 1)
	if got := readStream(streamOf(lineStart, lineTool0, lineArgs0, lineStop0, without, lineStop), options{}); got.err != nil || len(callsOf(got.reply)) != 1 {
		t.Errorf("no usage at the end: %v", got.err)
	}
}

// TestDisguisedTypes: a type that is a known one in another spelling is refused, even where unknown
// types pass.
func TestDisguisedTypes(t *testing.T) {
	for _, kind := range []string{"Tool_use", "TOOL_USE", "tool-use", "ToolUse", "tool_use.", "Text", "server_Tool_Use", "Function_call"} {
		block := strings.Replace(lineTool0, `"type":"tool_use"`, `"type":"`+kind+`"`, 1)
		if got := readStream(streamOf(lineStart, block, lineStop0, lineEndTurn, lineStop), options{unknown: true}); got.err == nil {
			t.Errorf("the block %s: became %s", kind, describe(got.reply))
		}
	}
	for _, line := range []string{
		strings.ReplaceAll(lineTool0, "content_block_start", "Content_block_start"),
		strings.ReplaceAll(lineToolUse, "message_delta", "message-delta"),
	} {
		if got := readStream(streamOf(lineStart, line, lineEndTurn, lineStop), options{unknown: true}); got.err == nil {
			t.Errorf("%s: shown as %s", line, got.shown)
		}
	}
	block := strings.Replace(lineText, `"type":"text","text":""`, `"type":"shell"`, 1)
	delta := strings.Replace(lineArgs0, "input_json_delta", "Input_json_delta", 1)
	if got := readStream(streamOf(lineStart, block, delta, lineStop0, lineEndTurn, lineStop), options{unknown: true}); got.err == nil {
		t.Errorf("the delta: shown as %s", got.shown)
	}
}
