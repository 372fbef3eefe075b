package admin

import "net/url"

func (r *Recent) Find(id string) (any, bool) { return r.find(id) }
func (r *Recent) Counts() Counts             { return r.counts() }

func (s *Sources) Activity(span string) (Activity, error) {
	a, err := s.activity(&Request{query: url.Values{"span": {span}}})
	found, _ := a.(Activity)
	return found, err
}
