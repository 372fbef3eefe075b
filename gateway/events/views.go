package events

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/wrapper"
)

const (
	// MaxViewBytes bounds the content of a view, as it is sent on, and MaxViewTypeBytes the
	// name of its type.
	MaxViewBytes     = 16 << 10
	MaxViewTypeBytes = 64
	// maxViewTypes bounds the views of one thread, maxViewThreads the threads with views of
	// this process, and maxViewThreadsPerPrincipal those of one principal.
	maxViewTypes               = 8
	maxViewThreads             = 256
	maxViewThreadsPerPrincipal = maxViewThreads / 4
)

// View is how a tool shows the state of its work in a thread, by the type of the view. Nothing
// here interprets the content, and no model reads it.
type View struct {
	Type    string          `json:"view_type"`
	Content json.RawMessage `json:"content"`
}

// NewView returns a view in whose content nothing hides. It is false for one that cannot be
// shown: its content is too long, or has names that are then equal.
func NewView(kind string, content map[string]any) (View, bool) {
	value, ok := escapeValue(content)
	if !ok {
		return View{}, false
	}
	data, err := wrapper.Marshal(value)
	return View{kind, data}, err == nil && len(data) <= MaxViewBytes
}

// Views holds the latest view of each type of each thread, for those who follow a call of the
// thread and for those who come later. They are in the memory of this process alone. The zero
// value is empty. It is safe for concurrent use.
type Views struct {
	mu       sync.Mutex
	byThread map[string]*threadViews
	count    int           // of the changes
	begun    chan struct{} // is closed when the next thread has its first view
}

type threadViews struct {
	principal string
	latest    []numberedView // the one that changed last is the last one
	expires   time.Time
	changed   chan struct{} // is closed with the next change
}

type numberedView struct {
	View
	number int
}

// Put replaces the view of a type. It reports whether there was room for it.
func (v *Views) Put(call Call, view View, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := v.thread(call, now)
	if of == nil {
		return false
	}
	at := slices.IndexFunc(of.latest, func(n numberedView) bool { return n.Type == view.Type })
	switch {
	case at >= 0:
		of.latest = slices.Delete(of.latest, at, at+1)
	case len(of.latest) >= maxViewTypes:
		return false
	}
	v.count++
	of.latest = append(of.latest, numberedView{view, v.count})
	of.expires = now.Add(store.Retention)
	close(of.changed)
	of.changed = make(chan struct{})
	return true
}

// thread returns the views of a thread; nil where there is room for no other thread's.
func (v *Views) thread(call Call, now time.Time) *threadViews {
	key := call.threadKey()
	if found := v.byThread[key]; found != nil {
		return found
	}
	owned := 0
	for other, of := range v.byThread {
		switch {
		case !now.Before(of.expires):
			close(of.changed)
			delete(v.byThread, other)
		case of.principal == call.Principal:
			owned++
		}
	}
	if len(v.byThread) >= maxViewThreads || call.Principal != "" && owned >= maxViewThreadsPerPrincipal {
		return nil
	}
	if v.byThread == nil {
		v.byThread = map[string]*threadViews{}
	}
	made := &threadViews{principal: strings.Clone(call.Principal), expires: now.Add(store.Retention), changed: make(chan struct{})}
	v.byThread[key] = made
	if v.begun != nil {
		close(v.begun)
		v.begun = nil
	}
	return made
}

// Forget removes the views of a principal's thread. Those who follow it wait for others.
func (v *Views) Forget(principal, thread string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := Call{Principal: principal, Thread: thread}.threadKey()
	if of := v.byThread[key]; of != nil {
		close(of.changed)
		delete(v.byThread, key)
	}
}

// ViewFollower follows the views of one thread. It is for one goroutine.
type ViewFollower struct {
	views  *Views
	call   Call
	number int // of the last change that was returned
}

// Follow follows the views of a call's thread.
func (v *Views) Follow(call Call) *ViewFollower { return &ViewFollower{views: v, call: call} }

// Next returns the latest views of the types that have changed since the last Next, and a
// channel that is closed when there may be others. A late reader gets the latest of each
// type.
func (f *ViewFollower) Next() (latest []View, changed <-chan struct{}) {
	v := f.views
	v.mu.Lock()
	defer v.mu.Unlock()
	of := v.byThread[f.call.threadKey()]
	if of == nil {
		if v.begun == nil {
			v.begun = make(chan struct{})
		}
		return nil, v.begun
	}
	for _, n := range of.latest {
		if n.number > f.number {
			latest = append(latest, n.View)
		}
	}
	f.number = v.count
	return latest, of.changed
}
