package models

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/callgate/callgate/upstream"
)

// api is the API that asks for the models.
type api int

const (
	openAI api = iota
	anthropic
)

// serves reports whether a model can be requested by a face of the API.
func (a api) serves(r *upstream.Route) bool {
	if a == anthropic {
		return r.Speaks(upstream.MessagesWire)
	}
	return r.Speaks(upstream.ChatWire) || r.Speaks(upstream.ResponsesWire)
}

// How long the answer of an upstream is used, and how long an upstream is not asked again after
// it gave none.
const (
	keepList    = 5 * time.Minute
	keepFailure = 30 * time.Second
	askTimeout  = 10 * time.Second // longer than requests wait: the next one has the list
)

// lists are what upstreams said they have, of one configuration. A reload forgets them.
type lists struct {
	client *upstream.Client // asks upstreams; nil asks none
	log    *slog.Logger     // is told of those that could not be asked
	wait   time.Duration    // how long a request waits for them
	now    func() time.Time

	mu  sync.Mutex
	set *upstream.Set
	of  map[string]*list // by upstream
}

// list is what one upstream said.
type list struct {
	models []upstream.ListedModel // nil: it could not be asked
	until  time.Time
	asking chan struct{} // closed once the upstream has answered; nil: it is not being asked
}

// models returns the models of a set that can be requested in an API: those named, then those of
// wildcards. Models of an upstream that speaks no protocol of that API are not among them.
func (s *lists) models(ctx context.Context, set *upstream.Set, by api) []model {
	var all []model
	seen := map[string]bool{}
	add := func(m upstream.ListedModel, route *upstream.Route) {
		if !seen[m.ID] && by.serves(route) {
			seen[m.ID] = true
			all = append(all, model{m, route.Upstream})
		}
	}
	for _, m := range set.Models() {
		if route, ok := set.Lookup(m.ID); ok {
			add(upstream.ListedModel{ID: m.ID}, route)
		}
	}
	for _, wildcard := range s.listed(ctx, set, set.Wildcards()) {
		for _, m := range wildcard.models {
			// Another upstream may serve a model of this one's, or another name may stand for
			// it.
			route, ok := set.Lookup(m.ID)
			if ok && !route.Exact && route.Upstream == wildcard.upstream && route.UpstreamModel == m.ID {
				add(m, route)
			}
		}
	}
	return all
}

// answered is what an upstream said.
type answered struct {
	upstream string
	models   []upstream.ListedModel
}

// listed returns what the upstreams of some routes say. It waits a while for those that must be
// asked first, and leaves those out that do not answer in time.
func (s *lists) listed(ctx context.Context, set *upstream.Set, routes []*upstream.Route) []answered {
	if s.client == nil || len(routes) == 0 {
		return nil
	}
	patience := time.NewTimer(s.wait)
	defer patience.Stop()
	for _, asking := range s.ask(set, routes) {
		select {
		case <-asking:
			continue
		case <-patience.C:
		case <-ctx.Done():
		}
		break
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []answered
	for _, r := range routes {
		if l := s.of[r.Upstream]; s.set == set && l != nil {
			all = append(all, answered{r.Upstream, l.models})
		}
	}
	return all
}

// ask begins to ask the upstreams of routes whose list is too old, each once, and returns what to
// wait for.
func (s *lists) ask(set *upstream.Set, routes []*upstream.Route) []chan struct{} {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set != set {
		s.set, s.of = set, map[string]*list{}
	}
	var asking []chan struct{}
	for _, r := range routes {
		l := s.of[r.Upstream]
		if l == nil {
			l = &list{}
			s.of[r.Upstream] = l
		}
		if l.asking == nil && !now.Before(l.until) {
			l.asking = make(chan struct{})
			go s.fetch(l, r, l.asking)
		}
		if l.asking != nil {
			asking = append(asking, l.asking)
		}
	}
	return asking
}

// fetch asks an upstream, and keeps what it says. It does not end with the request that needs
// the list: the next one may use it.
func (s *lists) fetch(l *list, route *upstream.Route, done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	models, err := s.client.ListModels(ctx, route, anthropic.serves(route))
	keep := keepList
	if err != nil {
		models, keep = nil, keepFailure
		s.log.Warn("an upstream did not list its models; only the models named in the configuration are listed", "upstream", route.Upstream,
			"cause", err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.models, l.until, l.asking = models, s.now().Add(keep), nil
}
