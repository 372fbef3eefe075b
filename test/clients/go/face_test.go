package clients_test

import (
	"strings"
	"testing"
)

// answer is what a model of any API answered: its text, its calls, and its thought or
// reasoning as the API has it.
type answer struct {
	text  string
	calls []called
}

type called struct{ id, name, arguments string }

// talk is a conversation that a client leads in its own API.
type talk interface {
	// ask sends the conversation, and appends the answer to it.
	ask(t *testing.T, stream bool) (answer, error)
	// returned appends what came of the calls of the last answer.
	returned(results []string, calls []called)
}

// speaker begins conversations with one client. Its body is what an error of the client
// was made of, and empty for any other error.
type speaker struct {
	name  string
	begin func(p place, scenario string, tools bool, counted *counted) talk
	body  func(error) string
}

func speakers() []speaker {
	return []speaker{speakerV1(), speakerV2(), speakerResponses()}
}

// lead lets a model call tools until it answers in text.
func lead(t *testing.T, c talk, stream bool) string {
	t.Helper()
	for range 6 {
		a, err := c.ask(t, stream)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.calls) == 0 {
			return a.text
		}
		var results []string
		for _, call := range a.calls {
			results = append(results, perform(t, call.name, call.arguments))
		}
		c.returned(results, a.calls)
	}
	t.Fatal("the model does not come to an end")
	return ""
}

// native leaves out the places of the text protocol, which chat completions alone have.
func native(all []place) []place {
	var kept []place
	for _, p := range all {
		if p.prefix == "" {
			kept = append(kept, p)
		}
	}
	return kept
}

func TestFaces(t *testing.T) {
	for _, s := range speakers() {
		for _, p := range native(places(t)) {
			t.Run(s.name+", "+p.name, func(t *testing.T) { faces(t, s, p) })
		}
	}
}

func faces(t *testing.T, s speaker, p place) {
	both(t, "text", func(t *testing.T, stream bool) {
		a, err := s.begin(p, "text", false, &counted{}).ask(t, stream)
		if err != nil || !strings.Contains(a.text, "rises and falls") || len(a.calls) > 0 {
			t.Errorf("%+v, %v", a, err)
		}
	})
	both(t, "a loop", func(t *testing.T, stream bool) {
		const found = `The best page is "Two tides a day", at https://example.com/tides. The notes of this project begin with "# Notes".`
		for scenario, want := range map[string]string{
			"agent": found, "call": "The value is 14.", "bytes": "The value is 14 — exactly.", "parallel": "The value is 14.", "thinking": "The value is 14 — exactly.",
		} {
			if got := lead(t, s.begin(p, scenario, true, &counted{}), stream); got != want {
				t.Errorf("%s: got  %s\nwant %s", scenario, got, want)
			}
		}
	})
	both(t, "an error of the server", func(t *testing.T, stream bool) {
		if a, err := s.begin(p, "rejected", false, &counted{}).ask(t, stream); err == nil || !strings.Contains(s.body(err), "Invalid `signature` in `thinking` block") {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("an error within a stream", func(t *testing.T) {
		if a, err := s.begin(p, "broken", false, &counted{}).ask(t, true); err == nil || s.body(err) == "" {
			t.Errorf("%+v, %v", a, err)
		}
	})
	if !p.judges {
		return
	}
	both(t, "a call that is repaired is seen repaired only", func(t *testing.T, stream bool) {
		for _, scenario := range []string{"near-name", "repair", "prose"} {
			a, err := s.begin(p, scenario, true, &counted{}).ask(t, stream)
			if err != nil || len(a.calls) != 1 || a.calls[0].name == "math_evalute" || strings.Contains(a.calls[0].arguments, `"1"`) {
				t.Errorf("%s: %+v, %v", scenario, a, err)
			}
		}
	})
	both(t, "a refusal is an error of the client", func(t *testing.T, stream bool) {
		count := &counted{}
		a, err := s.begin(p, "stubborn", true, count).ask(t, stream)
		if err == nil || !strings.Contains(s.body(err), `"unexpected_argument"`) || len(a.calls) > 0 {
			t.Errorf("%+v, %v", a, err)
		}
		if count.requests != 1 {
			t.Errorf("%d requests, want no further one", count.requests)
		}
	})
	both(t, "calls that were not offered are an error", func(t *testing.T, stream bool) {
		for _, scenario := range []string{"shell", "hosted"} {
			if a, err := s.begin(p, scenario, true, &counted{}).ask(t, stream); err == nil || s.body(err) == "" {
				t.Errorf("%s: %+v, %v", scenario, a, err)
			}
		}
	})
}

func TestFacesOrchestrate(t *testing.T) {
	for _, s := range speakers() {
		for _, p := range native(orchestrated(t)) {
			t.Run(s.name, func(t *testing.T) {
				both(t, "a whole task in one request", func(t *testing.T, stream bool) {
					a, err := s.begin(p, "agent", false, &counted{}).ask(t, stream)
					if err != nil || len(a.calls) > 0 || !strings.Contains(a.text, "https://example.com/science/tides") {
						t.Errorf("%+v, %v", a, err)
					}
				})
				both(t, "an endless loop ends", func(t *testing.T, stream bool) {
					a, err := s.begin(p, "loop", false, &counted{}).ask(t, stream)
					if err == nil || !strings.Contains(s.body(err), `"bound_reached"`) {
						t.Errorf("%+v, %v", a, err)
					}
				})
			})
		}
	}
}
