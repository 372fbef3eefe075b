package chat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/detector"
)

// frames are documents in which @ stands for a string that may be another one.
var frames = []string{
	`{"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"@"},"logprobs":null,"finish_reason":null}]}`,
	`{"id":"c1","system_fingerprint":"@","choices":[{"delta":{"role":"assistant","content":"@","reasoning":"@"},"index":0}],"obfuscation":"@"}`,
	`{ "choices" : [ { "index":1, "delta" : { "content" : "@" , "refusal":"no" }, "finish_reason":"stop" } ], "usage":{"total_tokens":3}}`,
	`{"choices":[{"index":0,"delta":{"content":"@"}},{"index":1,"delta":{"content":"@"}}]}`,
	`{"choices":[{"index":0,"delta":{"content":"@","tool_calls":[{"index":0,"id":"@","function":{"name":"f","arguments":"@"}}]}}]}`,
	`{"a":"@","b":"@","c":"@","d":"@","e":"@","f":"@","g":"@","h":"@","choices":[{"index":0,"delta":{"content":"@"}}]}`,
	`{"choices":[{"index":0,"delta":{"content":"@"},"message":{"content":"@"}}]}`,
	`{"choices":[{"index":0,"delta":{}}],"x":"@"}`,
	`{"@":"@","choices":[{"index":0,"delta":{"content":"@","@":1}}]}`,
}

var inStrings = []string{
	"", "a", "some words ", `\n`, `\"`, `\\`, `"`, `\`, "ä", "\xff", "\xc3", "\n", "\x7f", `\ud83d\ude00`, `\ud83d`, `\u12`, `\x`,
	`a","role":"x`, `a"},"delta":{"content":"b`, `"}}]} `, "\u2028", strings.Repeat("a", 500),
}

// sameRead holds that a document is read by the form of the one before as it is in full.
func sameRead(t *testing.T, before, document string) {
	t.Helper()
	read := func(forget bool) string {
		var r reader
		_, err := r.Event(nil, []byte(before))
		out := fmt.Sprintln(err)
		if forget {
			r.template.Forget()
		}
		data := []byte(document)
		deltas, err := r.Event(nil, data)
		for i := range deltas {
			d := &deltas[i]
			out += fmt.Sprintf("%d %d %s %q %s\n", d.Is, d.Answer.Index, d.Part.Type, d.Part.Text[d.From:], d.Beside.Bytes())
		}
		clear(data) // nothing that is kept may stand in it
		out += fmt.Sprintln(err, r.bytes, r.End())
		return out + described(r.Reply())
	}
	if got, want := read(false), read(true); got != want {
		t.Errorf("%.300q after %.300q:\nfound    %s\nexpected %s", document, before, got, want)
	}
}

func TestChunkTemplateChangesNothing(t *testing.T) {
	detector.OneGoroutine(t)
	for _, frame := range frames {
		for _, one := range inStrings {
			for _, two := range inStrings {
				sameRead(t, strings.ReplaceAll(frame, "@", one), strings.ReplaceAll(frame, "@", two))
				// One of the strings alone is another.
				sameRead(t, strings.ReplaceAll(frame, "@", one), strings.ReplaceAll(strings.Replace(frame, "@", two, 1), "@", one))
			}
		}
		for _, other := range frames {
			sameRead(t, strings.ReplaceAll(frame, "@", "a"), strings.ReplaceAll(other, "@", "b"))
		}
		document := strings.ReplaceAll(frame, "@", "a")
		for i := range document {
			sameRead(t, document, document[:i])
			sameRead(t, document, document[:i]+" "+document[i:])
			sameRead(t, document, document[:i]+`"`+document[i+1:])
		}
		sameRead(t, document, document+" ")
		sameRead(t, document, document+"x")
	}
}

// TestChunkTemplateIsUsed holds that the chunks of an ordinary stream are read by it.
func TestChunkTemplateIsUsed(t *testing.T) {
	for i, frame := range frames {
		var r reader
		if _, err := r.Event(nil, []byte(strings.ReplaceAll(frame, "@", "a"))); err != nil {
			t.Fatalf("%s: %v", frame, err)
		}
		if used := r.template.Match([]byte(strings.ReplaceAll(frame, "@", `ü\n`))); used != (i == 0) {
			t.Errorf("%s: it is used: %t", frame, used)
		}
	}
	var r reader
	obfuscated := `{"choices":[{"index":0,"delta":{"content":"%s"}}],"obfuscation":"%s"}`
	if _, err := r.Event(nil, fmt.Appendf(nil, obfuscated, "a", "xyz")); err != nil {
		t.Fatal(err)
	}
	if !r.template.Match(fmt.Appendf(nil, obfuscated, "b c", "q")) {
		t.Error("padding is not passed over")
	}
}

// FuzzChunkTemplate holds that a chunk is the same, whatever was read before it.
func FuzzChunkTemplate(f *testing.F) {
	for _, frame := range frames {
		for i, s := range inStrings[:20] {
			f.Add(frame, s, inStrings[20-i])
		}
	}
	f.Fuzz(func(t *testing.T, frame, one, two string) {
		if len(frame) > 4<<10 || strings.Count(frame, "@")*len(one+two) > 16<<10 {
			return
		}
		sameRead(t, strings.ReplaceAll(frame, "@", one), strings.ReplaceAll(frame, "@", two))
	})
}
