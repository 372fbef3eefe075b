package responses

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/detector"
	"github.com/callgate/callgate/upstream"
)

// frames are events in which @ stands for a text that may be another one, and # for a number.
var frames = []string{
	`{"type":"response.output_text.delta","sequence_number":#,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"@","logprobs":[]}`,
	`{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"@","obfuscation":"@"}`,
	` { "delta" : "@" , "content_index" : 0 , "sequence_number" : # , "type" : "response.refusal.delta", "output_index":1 } `,
	`{"type":"response.function_call_arguments.delta","sequence_number":#,"output_index":2,"item_id":"fc_1","delta":"@"}`,
	`{"sequence_number":#,"obfuscation":"@","d\u0065lta":"@","t\u0079pe":"response.reasoning_summary_text.delta","summary_index":0,"output_index":0,"item_id":"\u0072s_1"}`,
	`{"type":"response.shell_call_command.delta","sequence_number":#,"output_index":3,"command_index":1,"delta":"@","x":{"y":["@"]}}`,
	`{"type":"x.delta","delta":"@","sequence_number":#,"obfuscation":{"a":#}}`,
	// Those from here on make no template.
	`{"type":"response.output_text.done","sequence_number":#,"output_index":0,"item_id":"msg_1","content_index":0,"text":"@"}`,
	`{"type":"response.output_text.delta","sequence_number":#,"output_index":0,"delta":"@","error":{"code":"@"}}`,
	`{"type":"response.output_text.delta","sequence_number":#,"output_index":0,"delta":"@","item":{"id":"@"}}`,
	`{"type":"x","sequence_number":#,"delta":{"text":"@"}}`,
	`{"type":"@","sequence_number":#}`,
}

const learning = 7 // so many of frames make one

var inTexts = []string{
	"", "a", "some words ", `\n`, `\"`, `\\`, `"`, `\`, "ä", "\xff", "\xc3", "\n", "\r\n", "\x7f", "\x00", `\ud83d\ude00`, `\ud83d`, `\u12`, `\x`, `\/`,
	`a","type":"x`, `a"},"delta":{"content":"b`, `"}}]} `, "\u2028", strings.Repeat("a", 500), "ä\n", `ä\u00e4`, `ä\q`,
}

var inNumbers = []string{
	"0", "7", "12", "999999999999", "1000000000000", "1099511627776", "1099511627777", "99999999999999999999", "-1", "-0", "00", "01", "1.0", "1e2", "+1", " 1", "1 ",
	"", "null", `"1"`, "1,", "1}", "٣", "0x1",
}

func filled(frame, text, number string) string {
	return strings.ReplaceAll(strings.ReplaceAll(frame, "@", text), "#", number)
}

// described are the members of an event, without its values' places.
func described(e wireEvent) string {
	e.values, e.valueCount = [maxValues]varyingValue{}, 0
	e.kind, e.itemID = bytes.Clone(e.kind), bytes.Clone(e.itemID)
	return fmt.Sprintf("%q", fmt.Sprintf("%+v", e))
}

// sameRead holds that an event which the template of another one matches is read as it is
// without it. It reports whether the template matches.
func sameRead(t *testing.T, before, data string) bool {
	t.Helper()
	var first, matched, read wireEvent
	var form template
	if err := first.read([]byte(before)); err != nil {
		return false
	}
	form.learn(&first)
	clear(first.data) // nothing of it may be used
	raw := []byte(data)
	if !form.match(&matched, raw) {
		if described(matched) != described(wireEvent{}) {
			t.Errorf("%.300q after %.300q does not match, and is read", data, before)
		}
		return false
	}
	if err := read.read(raw); err != nil {
		t.Errorf("%.300q after %.300q matches, but is not taken: %v", data, before, err)
	} else if described(matched) != described(read) {
		t.Errorf("%.300q after %.300q:\nfound    %s\nexpected %s", data, before, described(matched), described(read))
	}
	return true
}

func TestTemplateChangesNothing(t *testing.T) {
	detector.OneGoroutine(t)
	for at, frame := range frames {
		base := filled(frame, "a", "1")
		for _, one := range inTexts {
			for _, two := range inTexts {
				sameRead(t, filled(frame, one, "1"), filled(frame, two, "2"))
				sameRead(t, filled(frame, one, "1"), filled(strings.Replace(frame, "@", two, 1), one, "2"))
			}
			for _, number := range inNumbers {
				sameRead(t, base, filled(frame, one, number))
				sameRead(t, filled(frame, one, number), base)
			}
		}
		for other := range frames {
			if sameRead(t, base, filled(frames[other], "b", "2")) && at != other {
				t.Errorf("%s matches %s", frames[other], base)
			}
		}
		data := filled(frame, "a b", "21")
		for i := range data {
			sameRead(t, base, data[:i])
			for _, by := range []string{"", `"`, `\`, "}", "0", "\xff"} {
				sameRead(t, base, data[:i]+by+data[i:])
				sameRead(t, base, data[:i]+by+data[i+1:])
				sameRead(t, data[:i]+by+data[i:], data)
			}
		}
		sameRead(t, base, data+" ")
		sameRead(t, base, data+data)
	}
}

// TestTemplateIsUsed holds that the deltas of an ordinary stream are read by it.
func TestTemplateIsUsed(t *testing.T) {
	for at, frame := range frames {
		base := filled(strings.Replace(frame, `["@"]`, `[]`, 1), "a", "1")
		if used := sameRead(t, base, strings.Replace(base, `"a"`, `"ü\n"`, 1)); used != (at < learning) {
			t.Errorf("%s: %t", frame, used)
		}
	}
}

// mixed is a stream in which deltas of several forms follow one another.
func mixed() []string {
	const response = `{"id":"resp_1","status":"in_progress","output":[]}`
	list := []string{
		`{"type":"response.created","sequence_number":0,"response":` + response + `}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
	}
	add := func(event string, texts ...string) {
		for _, text := range texts {
			list = append(list, strings.NewReplacer("#", fmt.Sprint(len(list)), "@", text).Replace(event))
		}
	}
	add(`{"type":"response.reasoning_summary_text.delta","sequence_number":#,"output_index":0,"item_id":"rs_1","summary_index":0,"delta":"@","obfuscation":"@"}`, "so", "me", "how")
	add(`{"type":"response.output_item.done","sequence_number":#,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`, "")
	add(`{"type":"response.output_item.added","sequence_number":#,"output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}`, "")
	add(`{"type":"response.output_text.delta","sequence_number":#,"output_index":1,"item_id":"msg_1","content_index":0,"delta":"@","logprobs":[]}`, "some", " more", ` \"words\"`, "")
	add(`{"type":"response.output_text.delta","sequence_number":#,"output_index":1,"item_id":"msg_1","content_index":1,"delta":"@","logprobs":[]}`, "and", " these")
	add(`{"type":"response.output_item.done","sequence_number":#,"output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[`+
		`{"type":"output_text","text":"some more \"words\""},{"type":"output_text","text":"and these"}]}}`, "")
	add(`{"type":"response.output_item.added","sequence_number":#,"output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"read","arguments":""}}`, "")
	add(`{"type":"response.function_call_arguments.delta","sequence_number":#,"output_index":2,"item_id":"fc_1","delta":"@"}`, `{\"a\"`, `:`, `1}`)
	add(`{"type":"response.output_item.done","sequence_number":#,"output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"read","arguments":"{\"a\":1}"}}`, "")
	add(`{"type":"response.completed","sequence_number":#,"response":{"id":"resp_1","status":"completed","output":[]}}`, "")
	return list
}

// transcript is everything that a stream returns for some events. Without the template, each event
// is read in full.
func transcript(events []string, templated bool) string {
	r := newReader(&upstream.Rules{Responses: upstream.ResponsesRules{UnknownItems: upstream.Pass}})
	var b strings.Builder
	for _, data := range events {
		if !templated {
			r.template = template{}
		}
		deltas, err := r.Event(nil, []byte(data))
		held, size, at := r.State()
		fmt.Fprintf(&b, "%v %d %d %d %q", err, held, size, at, r.event.kind)
		for i := range deltas {
			d := &deltas[i]
			fmt.Fprintf(&b, " %d %d %s %s", d.Is, d.From, d.Name, d.Raw)
			if d.Part != nil {
				fmt.Fprintf(&b, " %q", d.Part.Text)
			}
		}
		for _, it := range r.items {
			fmt.Fprintf(&b, " %s %q", it.id, it.call.payload)
		}
		b.WriteByte('\n')
	}
	fmt.Fprint(&b, r.End())
	return b.String()
}

// TestStreamWithTemplate changes every byte of every delta of a stream, and cuts each: what the
// stream returns is the same with the template and without it.
func TestStreamWithTemplate(t *testing.T) {
	detector.OneGoroutine(t)
	if whole := transcript(mixed(), true); !strings.HasSuffix(whole, "\n<nil>") || whole != transcript(mixed(), false) {
		t.Fatal(whole)
	}
	for at, data := range mixed() {
		if !strings.Contains(data, `"delta"`) {
			continue
		}
		for i := range data {
			// One change for each byte: TestTemplateChangesNothing makes all of them to the event alone.
			changed := []string{data[:i], data[:i] + data[i+1:], data[:i] + "0" + data[i+1:], data[:i] + `"` + data[i:], data[:i] + "\xff" + data[i+1:]}[i%5]
			events := mixed()
			events[at] = changed
			if with, without := transcript(events, true), transcript(events, false); with != without {
				t.Fatalf("%q:\nfound    %s\nexpected %s", changed, with, without)
			}
		}
	}
}

// TestAllocationsPerDelta holds that a delta of the form of the one before costs no allocation
// but those by which its text grows.
func TestAllocationsPerDelta(t *testing.T) {
	if detector.On {
		t.Skip("the race detector allocates")
	}
	const deltas = 400
	for _, form := range []string{
		`{"type":"response.output_text.delta","sequence_number":#,"output_index":1,"item_id":"msg_1","content_index":0,"delta":"some words ","logprobs":[]}`,
		`{"type":"response.output_text.delta","sequence_number":#,"output_index":1,"item_id":"msg_1","content_index":0,"delta":"größer ","obfuscation":"abcd"}`,
		`{"type":"response.reasoning_summary_text.delta","sequence_number":#,"output_index":0,"item_id":"rs_1","summary_index":0,"delta":"some words "}`,
	} {
		head := mixed()[:2]
		if strings.Contains(form, "output_text") {
			head = mixed()[:7]
		}
		var events [][]byte
		for i := range deltas {
			events = append(events, []byte(strings.Replace(form, "#", fmt.Sprint(100+i), 1)))
		}
		feed := func(events [][]byte) float64 {
			return testing.AllocsPerRun(5, func() {
				s := newReader(strict())
				for _, data := range head {
					if _, err := s.Event(nil, []byte(data)); err != nil {
						t.Fatal(err)
					}
				}
				for _, data := range events {
					if _, err := s.Event(nil, data); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
		if more := (feed(events) - feed(events[:1])) / (deltas - 1); more > 0.1 {
			t.Errorf("%.2f allocations for %s; expected at most 0.1", more, form)
		}
	}
}

// FuzzTemplate holds that an event is the same, whatever was read before it.
func FuzzTemplate(f *testing.F) {
	for _, frame := range frames {
		for i, text := range inTexts[:20] {
			f.Add(frame, text, inTexts[20-i], inNumbers[i])
		}
	}
	f.Fuzz(func(t *testing.T, frame, one, two, number string) {
		if len(frame) > 4<<10 || strings.Count(frame, "@")*len(one+two)+strings.Count(frame, "#")*len(number) > 16<<10 {
			return
		}
		sameRead(t, filled(frame, one, "1"), filled(frame, two, number))
	})
}
