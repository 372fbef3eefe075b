package configs

import (
	"reflect"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/registry"
)

// TestLabels: labels of tools and of servers reach the registry; a tool that states none is told from one that has none.
func TestLabels(t *testing.T) {
	files := configtest.With(t, map[string]string{
		"callgate.yaml": "threads: {labels: [untrusted, customer], default_labels: [untrusted], unnamed: shared, idle: 12h, keep_labels: 2d}\n# end\n",
		"tools/all.yaml": `tools:
  - {name: none, labels: [], input_schema: {type: object}, run: {type: client}}
  - {name: silent, input_schema: {type: object}, run: {type: client}}
  - {name: both, labels: [customer, untrusted], input_schema: {type: object}, run: {type: client}}
  - name: hosts
    labels: [{label: untrusted, unless_hosts: [docs.example, "*.in.example"], argument: address}, customer]
    input_schema: {type: object, properties: {address: {type: string}}}
    run: {type: client}
# end
`,
	})
	c, err := Load(configtest.Write(t, t.TempDir(), files))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Threads{Labels: []string{"untrusted", "customer"}, DefaultLabels: []string{"untrusted"}, Unnamed: UnnamedShared, Idle: 12 * time.Hour, KeepLabels: 48 * time.Hour}); !reflect.DeepEqual(c.Threads, want) {
		t.Errorf("threads: %+v", c.Threads)
	}
	for name, want := range map[string][]registry.Label{
		"none": {}, "silent": nil, "both": {{Name: "customer"}, {Name: "untrusted"}},
		"hosts": {{Name: "untrusted", UnlessHosts: []string{"docs.example", "*.in.example"}, Argument: "address"}, {Name: "customer"}},
	} {
		if entry, _ := c.Tools.Lookup(name); !reflect.DeepEqual(entry.Labels(), want) {
			t.Errorf("%s: %#v, want %#v", name, entry.Labels(), want)
		}
	}
}
