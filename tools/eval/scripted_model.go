package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/refusal"
)

// Model is a scripted model. It reads what a refusal wrote for it, and says the next completion.
// It is for one exchange and one goroutine.
type Model interface {
	Next(heard []byte) Reply
}

// Reply is the completion of a model, after it has waited.
type Reply struct {
	Completion string
	Wait       time.Duration
}

// cannot is what a model says that gives up.
const cannot = "I cannot do this here."

// argumentsPath is the place of the arguments in a call.
var argumentsPath = []string{"tool", "arguments"}

// speaker is what a scripted model that corrects itself wants, what it said last, and how it
// changes that.
type speaker struct {
	intent Intent
	last   string
	call   map[string]any // last, where it begins with a call that the model can read itself
	tried  map[string]int // how many of Intent.Others were used, by path
}

func newSpeaker(intent Intent, completion string) *speaker {
	s := &speaker{intent: intent, tried: map[string]int{}}
	s.say(completion)
	return s
}

// say makes a text the last completion.
func (s *speaker) say(text string) {
	s.last, s.call = text, nil
	if read, ok := decode(text).(map[string]any); ok && read["tool"] != nil {
		s.call = read
	}
}

// sayCall says the call as it was changed.
func (s *speaker) sayCall() {
	if s.call != nil {
		s.last = encode(s.call)
	}
}

// rewrite says what the model wants anew, in the form of a call.
func (s *speaker) rewrite() {
	agent, named := s.call["agent"]
	s.say(`{"tool":{"name":` + encode(s.intent.Tool) + `,"arguments":` + encode(s.intent.Arguments) + `}}`)
	if named && s.call != nil {
		s.call["agent"] = agent
		s.sayCall()
	}
}

// path splits a JSON Pointer.
func path(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(pointer[1:], "/")
	for i := range tokens {
		tokens[i] = refusal.UnescapePointer(tokens[i])
	}
	return tokens
}

// drop removes the member at a place. One beside the arguments that the model wanted as an
// argument becomes one.
func (s *speaker) drop(at []string) {
	name := at[len(at)-1]
	remove(s.call, at)
	if wanted, ok := s.intent.Arguments[name]; len(at) == len(argumentsPath) && ok {
		s.set(append(slices.Clone(argumentsPath), name), decode(string(wanted)))
	}
}

// set gives a place a value, where the object around it exists.
func (s *speaker) set(at []string, value any) {
	parent, there := member(s.call, at[:len(at)-1])
	if !there {
		return
	}
	last := at[len(at)-1]
	switch parent := parent.(type) {
	case map[string]any:
		parent[last] = value
	case []any:
		if i, err := strconv.Atoi(last); err == nil && i >= 0 && i < len(parent) {
			parent[i] = value
		}
	}
}

// envelope gives a place of the envelope what the model wants there, and reports whether the
// place is one.
func (s *speaker) envelope(at []string) bool {
	switch strings.Join(at, "/") {
	case "tool/name":
		s.set(at, s.intent.Tool)
	case "tool/arguments":
		s.set(at, decode(encode(s.intent.Arguments)))
	case "agent":
		remove(s.call, at)
		if s.intent.Agent != "" {
			s.set(at, s.intent.Agent)
		}
	default:
		return false
	}
	return true
}

// values lists what the model could write at a place of the arguments: what it wanted, and what
// would do as well.
func (s *speaker) values(at []string) []any {
	var all []any
	if len(at) == len(argumentsPath)+1 {
		if wanted, ok := s.intent.Arguments[at[len(at)-1]]; ok {
			all = append(all, decode(string(wanted)))
		}
	}
	for _, other := range s.intent.Others[key(at)] {
		all = append(all, decode(string(other)))
	}
	return all
}

// next gives a place of the arguments the next value that would do as well, and reports whether
// there is one.
func (s *speaker) next(at []string) bool {
	others := s.intent.Others[key(at)]
	if s.tried[key(at)] >= len(others) {
		return false
	}
	s.set(at, decode(string(others[s.tried[key(at)]])))
	s.tried[key(at)]++
	return true
}

// shorten puts the next value that would do as well in the place of each argument that has one,
// and reports whether one has.
func (s *speaker) shorten() (changed bool) {
	for name := range s.intent.Others {
		changed = s.next(append(slices.Clone(argumentsPath), name)) || changed
	}
	return changed
}

// key is the name of a place of the arguments in Intent.Others.
func key(at []string) string { return strings.Join(at[min(len(argumentsPath), len(at)):], ".") }

// heardError is the error of a tool_result line. Models read what they need of it.
type heardError struct {
	Result struct {
		Output struct {
			Error errorMembers `json:"error"`
		} `json:"output"`
	} `json:"tool_result"`
}

type errorMembers struct {
	Code         refusal.Code `json:"code"`
	DidYouMean   []string     `json:"did_you_mean"`
	Violations   []violation  `json:"violations"`
	RetryAfterMS int64        `json:"retry_after_ms"`
}

type violation struct {
	Code refusal.Code `json:"code"`
	Path string       `json:"path"`
}

// stubborn is a model that does not listen.
type stubborn struct{ completion string }

// NewStubborn returns the model that repeats its first completion.
func NewStubborn(_ Intent, completion string) Model { return stubborn{completion} }

func (m stubborn) Next([]byte) Reply { return Reply{Completion: m.completion} }
