package gateway

import (
	"slices"
	"sync"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/registry"
)

// labels says which labels calls add to their threads, by a configuration.
type labels struct {
	tools    [][]label // by the index of a tool; nil: it states none
	defaults []string  // of tools that state none
	hooks    *hook.Set // may add others
	// adders are the tools that add labels, by these; empty: of a label that several add, or hooks, or tools that state none.
	adders map[string]string
}

// label is one that a call of a tool adds.
type label struct {
	name     string
	argument string         // that names a host; empty: every call adds it
	unless   boundary.Lists // the hosts that do not bring it
}

// newLabels returns the labels of tools, and of hooks.
func newLabels(tools *registry.Registry, defaults []string, hooks *hook.Set) *labels {
	l := &labels{tools: make([][]label, tools.Len()), defaults: defaults, hooks: hooks, adders: map[string]string{}}
	adds := func(tool string, labels ...string) {
		for _, name := range labels {
			if other, known := l.adders[name]; known && other != tool {
				tool = ""
			}
			l.adders[name] = tool
		}
	}
	adds("", defaults...)
	for _, h := range hooks.All() {
		adds("", h.Labels...)
	}
	for _, entry := range tools.Entries() {
		stated := entry.Labels()
		if stated == nil || entry.Index() < 0 {
			continue
		}
		of := make([]label, len(stated))
		for i, s := range stated {
			of[i] = label{s.Name, s.Argument, boundary.Lists{Hosts: s.UnlessHosts}}
			adds(entry.Name(), s.Name)
		}
		l.tools[entry.Index()] = of
	}
	return l
}

// stated are those that a tool states; ok is false where it states none, and those of all such tools hold.
func (l *labels) stated(tool *registry.Entry) (of []label, ok bool) {
	if tool == nil || tool.Index() < 0 {
		return nil, false
	}
	of = l.tools[tool.Index()]
	return of, of != nil
}

// adds reports whether a call of a tool by an agent may add a label.
func (l *labels) adds(agent string, tool *registry.Entry) bool {
	of, ok := l.stated(tool)
	return len(of) > 0 || !ok && len(l.defaults) > 0 || l.hooks.Labels(agent, tool.Name())
}

// of are the labels that a call of a tool adds, but for those of hooks; nil is a tool that nobody knows. Arguments that cannot be read
// are nil.
func (l *labels) of(tool *registry.Entry, arguments func() map[string]any) (names []string) {
	of, ok := l.stated(tool)
	if !ok {
		return l.defaults
	}
	for i := range of {
		if of[i].argument == "" || !of[i].spares(arguments()[of[i].argument]) {
			names = append(names, of[i].name)
		}
	}
	return names
}

// adder is the one tool that can have added all of some labels; empty: it is not known.
func (l *labels) adder(names []string) string {
	tool := l.adders[names[0]]
	if slices.ContainsFunc(names, func(name string) bool { return l.adders[name] != tool }) {
		return ""
	}
	return tool
}

// spares reports whether a value names hosts that do not bring the label, and nothing else.
func (l *label) spares(value any) bool {
	switch value := value.(type) {
	case string:
		return l.unless.Within(boundary.KindURL, value) == nil || l.unless.Within(boundary.KindHost, value) == nil
	case []any:
		return len(value) > 0 && !slices.ContainsFunc(value, func(one any) bool {
			_, text := one.(string)
			return !text || !l.spares(one)
		})
	}
	return false
}

// broughtLabels are those that come with what a model reads beside the results of calls that were judged: with
// results that its request brings back, and with what its provider has run. It is safe for concurrent use.
type broughtLabels struct {
	mu    sync.Mutex
	names []string // sorted
	kept  int      // how many of them are kept of the thread
}

// unkept reports whether some are not kept yet, and keep says that all are.
func (b *broughtLabels) unkept() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept < len(b.names)
}

func (b *broughtLabels) keep() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = len(b.names)
}

// all are the labels so far.
func (b *broughtLabels) all() []string {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names
}

// add adds labels. A list that was returned before does not change.
func (b *broughtLabels) add(names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		if i, known := slices.BinarySearch(b.names, name); !known {
			b.names = slices.Insert(slices.Clone(b.names), i, name)
		}
	}
}

// WithLabels returns the admission of a conversation that brings labels (BringsResult).
func (a *Admission) WithLabels() *Admission {
	if a.kernel == nil || a.kernel.config.Load().asked == nil {
		return a
	}
	own := *a
	own.labels = &broughtLabels{}
	return &own
}

// BringsResult says that the model reads what a tool has said, of a call that was not judged in this conversation: its
// thread has the labels of that tool from here on, before the calls of this conversation that are judged next. A tool
// that is not named, or unknown, has those of tools that state none. Arguments are those of the call.
func (a *Admission) BringsResult(tool string, arguments []byte) {
	if a.labels == nil {
		return
	}
	config := a.config()
	if config.asked == nil || config.asked.labels == nil {
		return
	}
	entry, _ := config.Tools.Lookup(tool)
	a.labels.add(config.asked.labels.of(entry, func() map[string]any {
		value, err := parser.ReadValue(arguments, config.Output.MaxDepth)
		object, _ := value.(map[string]any)
		if err != nil {
			return nil
		}
		return object
	}))
}
