package gateway_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/hook/window"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

func textHook(action string) string {
	return `[{name: secrets, at: [text], patterns: [secrets], on_match: ` + action + `}]`
}

// TestHookedTexts: the text of a completion passes the hooks before anybody gets it, whole and in pieces,
// and the secret is not recorded. A denied text is refused at the stage approval, as one that was
// never released.
func TestHookedTexts(t *testing.T) {
	said := "say " + token + " now"
	for _, action := range []string{"redact", "deny"} {
		k, j := kernelHooked(t, textHook(action), nil, nil)
		o := k.Handle(context.Background(), gateway.Request{Inputs: []gateway.Input{{Completion: []byte(said)}}}, "")
		last := j.all()[len(j.all())-1]
		switch {
		case action == "redact" && (o.Refusal != nil || string(o.Text) != "say "+gone+" now"):
			t.Errorf("%+v", o)
		case action == "deny" && (o.Refusal == nil || o.Refusal.Code != refusal.HookDenied || o.Refusal.Stage != refusal.Approval || strings.Contains(o.Refusal.Message, token) || len(o.Text) > 0):
			t.Errorf("%+v", o)
		}
		if !slices.Equal(last.Hooks, []string{"secrets"}) {
			t.Errorf("recorded %+v", last)
		}
		clean(t, j)
		for size := 1; size < len(said); size++ {
			k, j := kernelHooked(t, textHook(action), nil, nil)
			s, err := admit(t, k, gateway.Request{}).Stream(context.Background(), gateway.ModeEnforce, size%2 == 0)
			if err != nil {
				t.Fatal(err)
			}
			out := ""
			for at := 0; at < len(said); at += size {
				out += string(s.Write([]byte(said[at:min(at+size, len(said))])))
			}
			refused := s.Refused()
			d := s.Close(context.Background(), false)
			out += string(d.Reports[0].Text)
			switch denied := d.Refusal(); {
			case action == "redact" && (denied != nil || refused || out != "say "+gone+" now"):
				t.Errorf("in pieces of %d: %q, %v", size, out, denied)
			case action == "deny" && (denied == nil || denied.Code != refusal.HookDenied || !refused || !strings.HasPrefix("say ", out)):
				t.Errorf("in pieces of %d: %q, %v", size, out, denied)
			}
			d.Release()
			clean(t, j)
		}
	}
}

// TestHookedTextWithoutASecret: a text in which hooks find nothing is released to its last byte, however it came.
func TestHookedTextWithoutASecret(t *testing.T) {
	k, _ := kernelHooked(t, textHook("redact"), nil, nil)
	for _, said := range []string{"say gh", "\"a\": 1", "x"} {
		for size := 1; size <= len(said); size++ {
			s, err := admit(t, k, gateway.Request{}).Stream(context.Background(), gateway.ModeEnforce, true)
			if err != nil {
				t.Fatal(err)
			}
			out := ""
			for at := 0; at < len(said); at += size {
				out += string(s.Write([]byte(said[at:min(at+size, len(said))])))
			}
			d := s.Close(context.Background(), false)
			if out += string(d.Reports[0].Text); out != said || d.Reports[0].Pieces != nil {
				t.Errorf("in pieces of %d: found %q, expected %q", size, out, said)
			}
			d.Release()
		}
	}
}

// TestTextHooksAreForTexts: a hook at texts sees no call, and one at calls no text; and where a call
// beside a text is refused before hooks saw the text, nothing of the text is released.
func TestTextHooksAreForTexts(t *testing.T) {
	k, _ := kernelHooked(t, textHook("deny"), body(`{}`, true), nil)
	for form, in := range written(`{"text":"` + token + `"}`) {
		d := admit(t, k, gateway.Request{}).Judge(context.Background(), gateway.ModeCall, in)
		if d.Refusal() != nil {
			t.Errorf("%s: %v", form, d.Refusal())
		}
		d.Release()
	}
	k, _ = kernelHooked(t, `[{name: secrets, at: [call], patterns: [secrets]}]`, nil, nil)
	if o := k.Handle(context.Background(), gateway.Request{Inputs: []gateway.Input{{Completion: []byte("say " + token)}}}, ""); o.Refusal != nil {
		t.Errorf("%v", o.Refusal)
	}
	k, _ = kernelHooked(t, textHook("redact"), nil, nil)
	prose := gateway.Input{Completion: []byte("say " + token), TextOnly: true}
	d := admit(t, k, gateway.Request{}).Judge(context.Background(), gateway.ModeEnforce, prose, written(`{"id":1}`)["native"])
	if d.Refusal() == nil || strings.Contains(string(d.Reports[0].Text), token) {
		t.Errorf("%v, %q", d.Refusal(), d.Reports[0].Text)
	}
	d = admit(t, k, gateway.Request{}).Judge(context.Background(), gateway.ModeEnforce, prose, written(`{"id":"a"}`)["native"])
	if d.Refusal() != nil || string(window.Join(d.Reports[0].Pieces)) != "say "+gone {
		t.Errorf("%v, %+v", d.Refusal(), d.Reports[0])
	}
	d.Release()
}

// TestTextCallout: a callout is asked once about a text, whole, also where that comes in pieces; and a
// check asks nobody.
func TestTextCallout(t *testing.T) {
	var asked []string
	k, _ := kernelHooked(t, `[{name: dlp, at: [text], url: "https://a.example"}]`, nil, func(d *calls.Deps) {
		d.Hooks = asker(func(q hook.Question, value string) (hook.Answer, error) {
			asked = append(asked, string(q.At)+" "+q.Tool+value)
			return hook.Answer{Redact: []string{""}}, nil
		})
	})
	s, err := admit(t, k, gateway.Request{}).Stream(context.Background(), gateway.ModeEnforce, true)
	if err != nil {
		t.Fatal(err)
	}
	if out := string(s.Write([]byte("Hello, "))) + string(s.Write([]byte("you."))); out != "" {
		t.Errorf("%q was released", out)
	}
	d := s.Close(context.Background(), false)
	if string(d.Reports[0].Text) != "[redacted:dlp]" || !slices.Equal(asked, []string{`text "Hello, you."`}) {
		t.Errorf("%q, asked %q", d.Reports[0].Text, asked)
	}
	if r := k.Kernel.Check(context.Background(), gateway.Request{Inputs: []gateway.Input{{Completion: []byte("Hi.")}}}); r.Verdict != gateway.VerdictText || len(asked) != 1 {
		t.Errorf("a check asks: %+v", r)
	}
	left, err := admit(t, k, gateway.Request{}).Hooks().ModelValue(context.Background(), []byte(`"thought"`))
	if string(left) != `"[redacted:dlp]"` || err != nil {
		t.Errorf("%s, %v", left, err)
	}
}

// TestSN56Texts: hooks see a text after the boundaries of calls beside it, and before hooks see those
// calls. The check of texts is in no test of order, since no call comes to it.
func TestSN56Texts(t *testing.T) {
	c := facetest.Config(t, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\nhooks: hooks.yaml\n",
		"hooks.yaml":    "hooks: [{name: texts, at: [text], patterns: [secrets]}, {name: calls, at: [call], patterns: [secrets]}]\n",
		"policy.csv":    "p, Analyst, *, acts, , allow\np, Analyst, *, acts, thread.calls('acts') > 1, deny\n",
		"tools.yaml":    "tools: [{name: acts, input_schema: {type: object, properties: {id: {type: string}, path: {type: string, x-boundary: path}}}, run: {type: mcp, url: \"https://a.example\", tool: acts}}]\n",
	})
	prose := gateway.Input{Completion: []byte("say " + token), TextOnly: true}
	call := func(arguments string) gateway.Input { return written(arguments)["native"] }
	for name, row := range map[string]struct {
		inputs []gateway.Input
		want   string // code of the refusal, and the hook that its message names
		by     string
	}{
		"a text":                            {[]gateway.Input{prose}, "hook_denied", "hook texts"},
		"a text beside a call outside":      {[]gateway.Input{prose, call(`{"path":"/outside"}`)}, "boundary_violation", ""},
		"a text beside a denied call":       {[]gateway.Input{prose, call(`{"id":"` + token + `"}`)}, "hook_denied", "hook texts"},
		"a denied call":                     {[]gateway.Input{call(`{"id":"` + token + `"}`)}, "hook_denied", "hook calls"},
		"a text beside a call denied since": {[]gateway.Input{prose, call(`{}`)}, "permission_denied", ""},
	} {
		s := hookConfig(c)
		ledger := newKeptCalls(t, s, row.want == "permission_denied")
		k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}, Ledger: ledger}, Engine: &engine{}, Store: store.NewMemory(time.Now)})
		r := admit(t, k, gateway.Request{Thread: "t"}).Judge(context.Background(), gateway.ModeEnforce, row.inputs...).Refusal()
		if r == nil || string(r.Code) != row.want || !strings.Contains(r.Message, row.by) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
