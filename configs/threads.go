package configs

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/refusal"
)

// Threads says what threads are to the conditions of the policy that read thread or caller.
type Threads struct {
	// The labels that tools can add to a thread; any other name is an error, in every file.
	Labels []string `key:"labels" example:"[untrusted, customer]"`
	// The labels of tools that state none, are brought by requests, or run by a model's provider;
	// absent, none.
	DefaultLabels []string `key:"default_labels" example:"[untrusted]"`
	// A tool that uses threads, called without one: refuse, or shared, where all such requests of a
	// caller are one thread.
	Unnamed string `key:"unnamed" of:"what becomes of calls in no thread" words:"refuse shared"`
	// How long after its last call a thread's counts (idle) and labels (keep_labels) stand.
	Idle       time.Duration `key:"idle" of:"how long what a thread has done counts" range:"1h..30d" restart:"" example:"7d"`
	KeepLabels time.Duration `key:"keep_labels" of:"how long the labels of a thread stand" range:"1h..365d" restart:"" example:"30d"`
}

// UnnamedShared is the value of Threads.Unnamed by which requests in no thread share one.
const UnnamedShared = "shared"

const (
	// maxLabels is how many labels a thread can have.
	maxLabels = 64

	defaultIdle    = 7 * 24 * time.Hour
	defaultStandby = 30 * 24 * time.Hour
)

func defaultThreads() Threads {
	return Threads{Unnamed: "refuse", Idle: defaultIdle, KeepLabels: defaultStandby}
}

// ReadNode reads the keys of threads.
func (t *Threads) ReadNode(n document.Node, _ string) {
	n.Object(document.Fields(t,
		document.Field("labels", func(n document.Node) { readLabels(n, &t.Labels) }),
		document.Field("default_labels", func(n document.Node) { readLabels(n, &t.DefaultLabels) }),
	)...)
	if n.Describing() {
		return
	}
	if t.KeepLabels < t.Idle {
		n.Fail("found keep_labels %s below idle %s; expected at least that, since labels outlive what else is kept",
			duration.Spell(t.KeepLabels), duration.Spell(t.Idle))
	}
	for i, label := range t.DefaultLabels {
		checkLabel(n.At(refusal.Pointer("default_labels", strconv.Itoa(i))), label, t.Labels)
	}
}

// readLabels reads a list of labels.
func readLabels(n document.Node, into *[]string) {
	*into = []string{}
	n.List("labels", func(i int, item document.Node) {
		var label string
		item.Label("a label", &label)
		if i == maxLabels {
			item.Fail("found more than %d labels; expected at most that many", maxLabels)
		}
		if label != "" && slices.Contains(*into, label) {
			item.Fail("found the label %q a second time; expected each once", label)
		}
		*into = append(*into, label)
	})
	n.Unique()
}

// checkLabel reports a label that is not of the closed list.
func checkLabel(at document.Node, label string, all []string) {
	if label == "" || slices.Contains(all, label) {
		return
	}
	expected := "one of threads.labels in the main file (" + strings.Join(all, ", ") + ")" + similar.DidYouMean(label, all)
	if len(all) == 0 {
		expected = "threads.labels in the main file to list it"
	}
	at.Fail("found the label %q; expected %s", label, expected)
}

// checkLabels holds the labels of tools against the closed list.
func (l *loader) checkLabels(c *Config, servers document.Node, entries []toolfile.Tool) {
	for _, e := range entries {
		for i, label := range e.Definition.Labels {
			if label.Name == "" || slices.Contains(c.Threads.Labels, label.Name) {
				continue
			}
			n := e.Node(&l.report)
			if _, _, stated := n.Child("labels"); stated { // those of its server are reported there
				checkLabel(n.At(refusal.Pointer("labels", strconv.Itoa(i))), label.Name, c.Threads.Labels)
			}
		}
	}
	for number, s := range c.Servers {
		for i, label := range s.Labels {
			checkLabel(serverAt(servers, number).At(refusal.Pointer("labels", strconv.Itoa(i))), label, c.Threads.Labels)
		}
	}
}

// checkCountedAlone reports a policy, or limits, that count what threads do, where each of several gateways would count alone.
func (l *loader) checkCountedAlone(limits document.Node, c *Config) {
	if c.Policy == nil || c.Limits == nil || c.Limits.Replicas <= 1 || c.Store.Kind == StoreRedis ||
		c.Limits.Threads == nil && len(c.Policy.Terms()) == 0 && !c.Policy.ReadsLabels() {
		return
	}
	what := "a policy that reads what threads have done"
	if c.Limits.Threads != nil {
		what = "limits of threads"
	}
	limits.At("/replicas").Fail("found %d replicas with store.kind %s, and %s; expected store.kind redis, where all of them keep it together", c.Limits.Replicas, c.Store.Kind, what)
}
