package store

import "sync"

// Watch waits for one change of one call. A change after Watch returned is not
// missed: who watches first and asks then, sees it in one of the two.
type Watch struct {
	// Changed is closed when the call has been finished, has begun to wait, or has
	// another note.
	Changed  <-chan struct{}
	watchers *watchers
	id       string
	changed  chan struct{}
}

// Stop ends a watch. Each is to be stopped, once it is not needed any more.
func (w *Watch) Stop() { w.watchers.remove(w) }

// maxWatches bounds how many there are at once.
const maxWatches = 16_384

// watchers are the watches of a store. The zero value has none.
type watchers struct {
	mu   sync.Mutex
	byID map[string]map[*Watch]bool
	n    int
}

func (s *watchers) add(id string) (*Watch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n >= maxWatches {
		return nil, ErrFull
	}
	if s.byID == nil {
		s.byID = map[string]map[*Watch]bool{}
	}
	changed := make(chan struct{})
	w := &Watch{Changed: changed, watchers: s, id: id, changed: changed}
	if s.byID[id] == nil {
		s.byID[id] = map[*Watch]bool{}
	}
	s.byID[id][w] = true
	s.n++
	return w, nil
}

func (s *watchers) remove(w *Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.byID[w.id][w] {
		return
	}
	s.n--
	if delete(s.byID[w.id], w); len(s.byID[w.id]) == 0 {
		delete(s.byID, w.id)
	}
}

// notify wakes those who watch a call.
func (s *watchers) notify(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.byID[id] {
		close(w.changed)
		s.n--
	}
	delete(s.byID, id)
}

// ids are the calls that are watched.
func (s *watchers) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.byID))
	for id := range s.byID {
		all = append(all, id)
	}
	return all
}
