package chat

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
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

// sameRead holds that what one reader reads after another document is what it
// reads of it alone.
func sameRead(t *testing.T, before, document string) {
	t.Helper()
	var used Reader
	first, _ := used.ReadChunk([]byte(before))
	seen := fmt.Sprintf("%+v", first) // which is read without the template
	bytes := []byte(document)
	got, err := used.ReadChunk(bytes)
	clear(bytes) // nothing that was read may stand in it
	want, fault := new(Reader).ReadChunk([]byte(document))
	if fmt.Sprint(err) != fmt.Sprint(fault) || !reflect.DeepEqual(got, want) {
		t.Errorf("%.300q after %.300q:\nfound    %+v, %v\nexpected %+v, %v", document, before, got, err, want, fault)
	}
	if fmt.Sprintf("%+v", first) != seen {
		t.Errorf("%.300q after %.300q has changed it", document, before)
	}
}

func TestChunkTemplateChangesNothing(t *testing.T) {
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
		var r Reader
		if _, err := r.ReadChunk([]byte(strings.ReplaceAll(frame, "@", "a"))); err != nil {
			t.Fatalf("%s: %v", frame, err)
		}
		c := r.template.match([]byte(strings.ReplaceAll(frame, "@", `ü\n`)))
		if used := i != 1 && i < 3; used != (c != nil) {
			t.Errorf("%s: found %+v", frame, c)
		}
		if c = r.template.match([]byte(strings.Replace(frame, "@", `b`, 1))); c != nil && i > 2 {
			t.Errorf("%s: found %+v", frame, c)
		}
	}
	var r Reader
	obfuscated := `{"choices":[{"index":0,"delta":{"content":"%s"}}],"obfuscation":"%s"}`
	if _, err := r.ReadChunk(fmt.Appendf(nil, obfuscated, "a", "xyz")); err != nil {
		t.Fatal(err)
	}
	c := r.template.match(fmt.Appendf(nil, obfuscated, "b c", "q"))
	if c == nil || *c.Choices[0].Delta.Content != "b c" || string(c.Extra.Lookup("obfuscation")) != `"q"` {
		t.Errorf("found %+v", c)
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
