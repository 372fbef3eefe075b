package hook

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/hook/window"
	"github.com/callgate/callgate/internal/rawjson"
)

// textSet is a set of hooks at texts.
func textSet(hooks ...*Hook) *Set {
	for i, h := range hooks {
		if h.At = []Point{Text}; h.Name == "" {
			h.Name = fmt.Sprint("hook", i)
		}
		if h.MaxBytes == 0 {
			h.MaxBytes = 1 << 16
		}
	}
	return NewSet(hooks)
}

// streamed takes a text in pieces through hooks; out is what they let out, after each piece.
func streamed(r Runner, s *Set, pieces []string, seen func(read, out string)) (out string, t *Texts) {
	t = r.Text(s, Question{Agent: "Analyst"})
	read := ""
	for _, p := range pieces {
		buffer := []byte(p)
		out += string(window.Join(t.Write(buffer)))
		clear(buffer) // it is the caller's
		read += p
		seen(read, out)
	}
	out += string(window.Join(t.Close(context.Background())))
	return out, t
}

// whole is what hooks leave of a text that does not come in pieces.
func whole(r Runner, s *Set, text string) (string, *Denial) {
	o := r.Run(context.Background(), s, Question{At: Text, Agent: "Analyst"}, rawjson.AppendQuote(nil, text))
	if o.Denied != nil {
		return "", o.Denied
	}
	left, err := rawjson.Unquote(o.Value)
	if err != nil {
		panic(err)
	}
	return string(left), nil
}

// secretTexts are parts of texts: secrets, beginnings of them, and words.
func secretTexts() []string {
	all := []string{"the ", "\n", " ", "é", "{\"a\":\"", "\"}", "\"", `"\u0041KIA` + upper[:16] + `"`, "[", "]", "-----BEGIN ", "AKIA", "ghp_", "sk-", "bearer ", "Authorization: ", "eyJ", "u\u2028"}
	for _, name := range BuiltinNames()[1:] {
		all = append(all, samples[name]...)
		all = append(all, samples[name][0][:len(samples[name][0])/2])
	}
	return all
}

func textSets() map[string]*Set {
	secrets, denied := Builtin(Secrets), Builtin("github-token")
	first, err := NewPattern("first", `redacted:(aws|jwt)[a-z-]*`)
	if err != nil {
		panic(err)
	}
	return map[string]*Set{
		"redacting": textSet(&Hook{Patterns: secrets, OnMatch: Redact}),
		"denying":   textSet(&Hook{Patterns: secrets, OnMatch: Deny}),
		"both":      textSet(&Hook{Patterns: secrets[5:], OnMatch: Redact}, &Hook{Patterns: denied, OnMatch: Deny}, &Hook{Patterns: secrets[:5], OnMatch: Redact}),
		"in turn":   textSet(&Hook{Patterns: secrets, OnMatch: Redact}, &Hook{Patterns: []*Pattern{first}, OnMatch: Redact}),
		"short":     textSet(&Hook{Patterns: secrets, OnMatch: Redact, MaxBytes: 120}),
	}
}

// sameAsWhole checks that what comes out of a text in pieces is what the hooks leave of the whole, and
// that nothing was out which they would not have left, however the text continued.
func sameAsWhole(t *testing.T, name string, s *Set, pieces []string) {
	t.Helper()
	r := Runner{Now: time.Now}
	text := strings.Join(pieces, "")
	want, denied := whole(r, s, text)
	before := ""
	got, texts := streamed(r, s, pieces, func(read, out string) {
		if out == before {
			return
		}
		before = out
		if could, denied := whole(r, s, read+"AAAABBBBCCCCDDDDEEEEFFFFGGGG0000"); denied == nil && !strings.HasPrefix(could, out) {
			t.Fatalf("%s: after %q, %q was out; %q is right", name, read, out, could)
		}
	})
	switch {
	case (denied != nil) != (texts.Denied() != nil):
		t.Fatalf("%s: %q in %q: denied %+v, expected %+v", name, text, pieces, texts.Denied(), denied)
	case denied == nil && got != want:
		t.Fatalf("%s: %q in %q became %q, expected %q", name, text, pieces, got, want)
	case name == "denying":
		for _, p := range builtin {
			if at := p.expr.FindStringIndex(text); at != nil && len(got) > at[0] {
				t.Fatalf("%s: %q was let out of %q", name, got, text)
			}
		}
	}
}

func split(random *rand.Rand, text string) []string {
	var pieces []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(1+random.IntN(24), len(runes))
		pieces, runes = append(pieces, string(runes[:n])), runes[n:]
	}
	return pieces
}

// TestTextsInPieces: random texts with secrets, in random pieces.
func TestTextsInPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	parts := secretTexts()
	for name, s := range textSets() {
		for range 20 {
			var text strings.Builder
			for range random.IntN(6) {
				text.WriteString(parts[random.IntN(len(parts))])
			}
			sameAsWhole(t, name, s, split(random, text.String()))
		}
	}
}

// TestSecretInPieces: each secret, cut in two at every third byte, and in single bytes.
func TestSecretInPieces(t *testing.T) {
	sets := textSets()
	for _, name := range BuiltinNames()[1:] {
		text := "say " + samples[name][0] + " now"
		for i := 0; i < len(text); i += 3 {
			sameAsWhole(t, "redacting", sets["redacting"], []string{text[:i], text[i:]})
		}
		sameAsWhole(t, "redacting", sets["redacting"], strings.Split(text, ""))
		sameAsWhole(t, "denying", sets["denying"], strings.Split(text, ""))
		out, _ := streamed(Runner{Now: time.Now}, sets["redacting"], strings.Split(text, ""), func(string, string) {})
		if !strings.HasPrefix(out, "say ") || !strings.Contains(out, "[redacted:") {
			t.Errorf("%s became %q", text, out)
		}
	}
}

func FuzzTexts(f *testing.F) {
	for _, part := range secretTexts() {
		f.Add("say "+part+" now", int64(1))
	}
	f.Add(`{"a":"\u0041KIA`+upper[:16]+`"}`, int64(2))
	sets := textSets()
	f.Fuzz(func(t *testing.T, text string, seed int64) {
		if len(text) > 1<<10 {
			return
		}
		pieces := split(rand.New(rand.NewPCG(uint64(seed), 0)), strings.ToValidUTF8(text, "?"))
		for name, s := range sets {
			sameAsWhole(t, name, s, pieces)
		}
	})
}

// TestWholeTexts: a text that may be JSON comes out at its end, and so does one that a callout is asked
// about.
func TestWholeTexts(t *testing.T) {
	key := "AKIA" + upper[:16]
	calls := 0
	asks := asker(func(_ context.Context, value []byte) (Answer, error) {
		if calls++; string(value) != `"say it"` {
			t.Errorf("asked about %s", value)
		}
		return Answer{Redact: []string{""}}, nil
	})
	away := asker(func(context.Context, []byte) (Answer, error) { return Answer{}, errors.New("away") })
	callout := textSet(&Hook{Name: "dlp", Callout: &Callout{Timeout: time.Minute}})
	secrets := textSets()["redacting"]
	for name, test := range map[string]struct {
		asker  Asker
		set    *Set
		pieces []string
		want   string
		denied bool
	}{
		"JSON":     {nil, secrets, []string{" \n", "{\"a\":", "\"\\u0041", key[1:], "\"}"}, " \n{\"a\":\"[redacted:aws-access-key]\"}", false},
		"almost":   {nil, secrets, []string{"[see] ", key[:7], key[7:]}, "[see] [redacted:aws-access-key]", false},
		"blank":    {nil, secrets, []string{" ", "\n"}, " \n", false},
		"nothing":  {nil, secrets, nil, "", false},
		"callout":  {asks, callout, []string{"say", " it"}, "[redacted:dlp]", false},
		"away":     {away, callout, []string{"say", " it"}, "", true},
		"nobody":   {nil, callout, []string{"say", " it"}, "", true},
		"too long": {nil, textSet(&Hook{Patterns: Builtin(Secrets), MaxBytes: 12}), []string{"0123456789", "a"}, "0123456789", true},
	} {
		out, texts := streamed(Runner{Asker: test.asker, Now: time.Now}, test.set, test.pieces, func(_, out string) {
			if out != "" && name != "too long" {
				t.Errorf("%s: %q is out", name, out)
			}
		})
		if out != test.want || (texts.Denied() != nil) != test.denied {
			t.Errorf("%s: %q, %+v", name, out, texts.Denied())
		}
	}
	if calls != 1 {
		t.Errorf("asked %d times", calls)
	}
}

// endings counts what hooks said.
type endings []string

func (e *endings) HookEnded(hook, at, verdict string, _ time.Duration) {
	*e = append(*e, hook+" "+at+" "+verdict)
}

// TestTextVerdicts: one for each hook, and none for hooks behind the one that denies.
func TestTextVerdicts(t *testing.T) {
	key := "AKIA" + upper[:16]
	for text, want := range map[string][]string{
		"say " + key:                      {"hook0 text redacted", "hook1 text passed"},
		"say it":                          {"hook0 text passed", "hook1 text passed"},
		"ghp_" + letters[:36] + " " + key: {"hook1 text denied"},
	} {
		var e endings
		s := textSet(&Hook{Patterns: Builtin("aws-access-key"), OnMatch: Redact}, &Hook{Patterns: Builtin("github-token"), OnMatch: Deny})
		_, texts := streamed(Runner{Now: time.Now, Observer: &e}, s, strings.SplitAfter(text, " "), func(string, string) {})
		if !slices.Equal(e, want) {
			t.Errorf("%q: %q", text, []string(e))
		}
		if d := texts.Denied(); d != nil && (d.Hook != "hook1" || strings.Contains(d.Reason, "ghp_")) {
			t.Errorf("%+v", d)
		}
	}
	if (Runner{Now: time.Now}).Text(NewSet([]*Hook{{At: []Point{Call}}}), Question{}) != nil || (Runner{}).Text(nil, Question{}) != nil {
		t.Error("a text is read for no hook")
	}
}
