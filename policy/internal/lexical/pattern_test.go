package lexical

import "testing"

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		want          bool
	}{
		{"web.search", "*", true}, {"web.search", "web.search", true}, {"web.search", "web.*", true}, {"web.a.b", "web.*", true}, {"web.a.b", "web.a.*", true},
		{"web", "web.*", false}, {"web.", "web.*", false}, {"webs.x", "web.*", false}, {"Web.search", "web.*", false}, {"web.search", "web.search.*", false},
		{"web.search.x", "web.search", false}, {"", "web.*", false}, {"web.search", "", false},
		{"acme/alpha", "acme/*", true}, {"acme", "acme/*", false}, {"acme/", "acme/*", false}, {"acmes/alpha", "acme/*", false}, {"acme/alpha", "*", true},
	} {
		if got := Matches(c.name, c.pattern); got != c.want {
			t.Errorf("%q matches %q: %v", c.name, c.pattern, got)
		}
	}
}
