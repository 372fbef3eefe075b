package store

import "sync"

// Watch waits for one change of one call. No change after the watch was made is
// missed: watch first, then read the call, and every change is in one of the two.
type Watch struct {
	// Changed is closed when the call is finished, begins to wait, or gets other
	// metadata. It may be closed without any of these, too.
	Changed  <-chan struct{}
	watchers *Watchers
	id       string
	changed  chan struct{}
}

// Stop ends the watch. Stop every watch that is no longer needed.
func (w *Watch) Stop() { w.watchers.remove(w) }

// maxWatches bounds how many watches there are at once.
const maxWatches = 16_384

// Watchers are the watches of a store. The zero value is ready to use.
type Watchers struct {
	mu   sync.Mutex
	byID map[string]map[*Watch]bool
	n    int
}

// Add adds a watch of a call. It is an error beyond the bound of watches.
func (s *Watchers) Add(id string) (*Watch, error) {
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

func (s *Watchers) remove(w *Watch) {
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

// Notify wakes everybody who watches a call.
func (s *Watchers) Notify(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.byID[id] {
		close(w.changed)
		s.n--
	}
	delete(s.byID, id)
}

// IDs returns the ids of the calls that are watched.
func (s *Watchers) IDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.byID))
	for id := range s.byID {
		all = append(all, id)
	}
	return all
}
