package threads_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/threads"
	"github.com/callgate/callgate/store"
)

// Two tenants that name one thread have two groups, whatever they name it, and a tenant has
// one group for each thread.
func TestThreadsOfTenantsDoNotMeet(t *testing.T) {
	scopes := []store.Scope{
		{Principal: "one", Workspace: "acme", Project: "alpha"}, {Principal: "two", Workspace: "acme", Project: "alpha"},
		{Principal: "one", Workspace: "globex", Project: "alpha"}, {Principal: "one", Workspace: "acme", Project: "beta"},
		{Principal: `one" "acme`, Workspace: "", Project: "alpha"}, {Principal: "one", Workspace: `acme" "`, Project: "alpha"},
	}
	whose := map[string]string{}
	names := []string{"conv", "conv~", "../conv", "conv~AAAAAAAAAAAAAAAA"}
	for _, scope := range scopes {
		names = append(names, threads.Group(scope, "conv")) // the name of another's group
	}
	for _, scope := range scopes {
		for _, name := range names {
			group, by := threads.Group(scope, name), fmt.Sprint(scope, name)
			if other, taken := whose[group]; taken {
				t.Errorf("%s and %s have the group %s", by, other, group)
			}
			if whose[group] = by; group != threads.Group(scope, name) || !strings.HasPrefix(group, name) || strings.Contains(group, "one") {
				t.Errorf("%s has the group %s", by, group)
			}
		}
	}
	if got := threads.Group(store.Scope{Workspace: "acme"}, "conv"); got != "conv" {
		t.Errorf("without credentials found %s", got)
	}
}

func TestAncestorsAreChecked(t *testing.T) {
	many := make([]string, threads.MaxAncestors+1)
	for i := range many {
		many[i] = fmt.Sprint("a", i)
	}
	for name, c := range map[string]struct {
		ancestors []string
		valid     bool
	}{
		"none":            {nil, true},
		"two":             {[]string{"root", "parent"}, true},
		"the most":        {many[1:], true},
		"one more":        {many, false},
		"no name":         {[]string{"root", ""}, false},
		"twice":           {[]string{"root", "parent", "root"}, false},
		"its own":         {[]string{"root", "conv"}, false},
		"of another case": {[]string{"Root", "root"}, true},
	} {
		if err := threads.CheckAncestors("conv", c.ancestors); (err == nil) != c.valid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
