// Package hook holds the hooks of an operator: what each is asked about, what it answers, and the
// patterns that find secrets. A hook sees the arguments of a call before it is decided (Call), the
// result of a tool before anybody gets it (Result), and the text of a model (Text). It lets them pass, denies them, replaces
// texts in them, or labels the thread. It never adds a permission, and in doubt it denies: a hook that fails, answers late
// or answers anything else than was agreed refuses.
//
// The package has no I/O. Package app asks the hooks that are programs of the operator.
package hook

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Point is where a hook is run. The names are in configurations.
type Point string

// The points.
const (
	Call   Point = "call"   // the arguments of a call, after all checks but approval
	Result Point = "result" // what a tool answers, and results that come back in a request
	Text   Point = "text"   // what a model says that is no call
)

// Points lists the points.
func Points() []Point { return []Point{Call, Result, Text} }

// Action is how a hook with patterns treats a match. The names are in configurations.
type Action string

// The actions.
const (
	Deny   Action = "deny"
	Redact Action = "redact"
	Label  Action = "label"
)

// Hook is one hook of a configuration. It has patterns, or a callout. It is immutable.
type Hook struct {
	Name string  `key:"name" of:"the hook's name" form:"label"`
	At   []Point `key:"at"`
	// Tools and Agents are for whom it is: names, NAME.* for everything below a name, or *. Empty
	// is for all.
	Tools    []string   `key:"tools"`
	Agents   []string   `key:"agents"`
	Patterns []*Pattern `key:"patterns"`
	OnMatch  Action     `key:"on_match" of:"what a match does" words:"deny redact label"` // of patterns
	Callout  *Callout
	// Labels are those that a match adds to the thread (Label), or that the callout may name.
	Labels []string `key:"labels"`
	// MaxBytes bounds the value that it sees. A longer one is denied.
	MaxBytes int `key:"max_bytes" of:"the longest value that the hook reads, in bytes" range:"1..67108864"`
}

// Callout is a program of the operator that is asked by HTTP.
type Callout struct {
	URL *url.URL // may hold a secret
	// Addresses are those that may be connected to; empty: public ones.
	Addresses []string      `key:"addresses" of:"addresses or prefixes" form:"address"`
	Timeout   time.Duration `key:"timeout" of:"how long an answer may take" range:"10ms..30s"`
	// Header makes the header of a request at that time: credentials and signatures. Its error
	// holds no secret.
	Header func(id string, at time.Time, body []byte) (http.Header, error)
}

// Question has the facts that a hook gets beside the value. Its names are on the wire.
type Question struct {
	At        Point  `json:"at"`
	CallID    string `json:"call_id"`
	RequestID string `json:"request_id"`
	Mode      string `json:"mode"` // call, enforce
	Principal string `json:"principal"`
	Agent     string `json:"agent"`
	Workspace string `json:"workspace"`
	Project   string `json:"project"`
	Tool      string `json:"tool"`
}

// Answer is the verdict of a callout on a value. The zero value lets it pass.
type Answer struct {
	Deny    bool
	Message string // of a denial, for the model; bounded, and nothing hides in it
	// Redact are the JSON Pointers of the texts in the value that are to be replaced.
	Redact []string
	// Labels are added to the thread: some of those that the callout may name.
	Labels []string
}

// Asker asks the callout of a hook. An error denies; it is for the operator.
type Asker interface {
	Ask(ctx context.Context, h *Hook, q Question, value []byte) (Answer, error)
}

// The verdicts of a hook, as metrics have them.
const (
	Passed   = "passed"
	Redacted = "redacted"
	Labelled = "labelled"
	Denied   = "denied"
	Failed   = "failed" // it could not answer, and so it denied
)

// Observer counts the verdicts of hooks. It must not block, and must be safe for concurrent use.
type Observer interface {
	HookEnded(hook, at, verdict string, took time.Duration)
}

// Set is the hooks of a configuration, in their order. A nil set has none.
type Set struct{ hooks []*Hook }

// NewSet returns the set of some hooks; nil of none.
func NewSet(hooks []*Hook) *Set {
	if len(hooks) == 0 {
		return nil
	}
	return &Set{hooks}
}

// All are the hooks, in their order.
func (s *Set) All() []*Hook {
	if s == nil {
		return nil
	}
	return s.hooks
}

// Applies reports whether a hook is to be run at a point of a tool for an agent.
func (s *Set) Applies(at Point, agent, tool string) bool {
	return s != nil && slices.ContainsFunc(s.hooks, func(h *Hook) bool { return h.applies(at, agent, tool) })
}

// Labels reports whether a hook may label what a tool is given by an agent, or what it answers.
func (s *Set) Labels(agent, tool string) bool {
	return s != nil && slices.ContainsFunc(s.hooks, func(h *Hook) bool {
		return len(h.Labels) > 0 && (h.applies(Call, agent, tool) || h.applies(Result, agent, tool))
	})
}

// At reports whether a hook is to be run at a point of any call.
func (s *Set) At(at Point) bool {
	return s != nil && slices.ContainsFunc(s.hooks, func(h *Hook) bool { return slices.Contains(h.At, at) })
}

// applies reports whether the hook is to be run. Where the tool is not known, all hooks are.
func (h *Hook) applies(at Point, agent, tool string) bool {
	return slices.Contains(h.At, at) && matches(h.Agents, agent) && (tool == "" || matches(h.Tools, tool))
}

// matches reports whether one of some patterns of names is for a name; without any, all are.
func matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool { return match(pattern, name) })
}

func match(pattern, name string) bool {
	prefix, below := strings.CutSuffix(pattern, "*")
	return pattern == name || below && strings.HasPrefix(name, prefix) && (name != prefix || prefix == "")
}

// Matches reports whether a pattern of names is for one of some names.
func Matches(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return match(pattern, name) })
}

// NamesPattern is the form of patterns of names, as a regular expression.
const NamesPattern = `^(\*|[^*\s]+?(\.\*)?)$`

// ValidNames reports whether a text is a pattern of names: a name, NAME.*, or *.
func ValidNames(pattern string) bool {
	name, below := strings.CutSuffix(pattern, "*")
	if name == "" {
		return below
	}
	return (!below || strings.HasSuffix(name, ".") && len(name) > 1) && !strings.ContainsAny(name, "* \t\r\n")
}
