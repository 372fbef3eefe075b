package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
)

// TestLIF01EveryServerOfTheConfiguration: every callback server is told of closed threads, also
// one without tools, and every callback tool that is stated by itself; no server of another
// type. A reload replaces them.
func TestLIF01EveryServerOfTheConfiguration(t *testing.T) {
	files := map[string]string{
		"callgate.yaml": "servers: servers.yaml\n",
		"servers.yaml": `servers:
  - {name: one, type: callback, url: "https://one.example/base", credential: "env:ONE"}
  - {name: two, type: oxp, url: "https://two.example"}
  - {name: three, type: callback, url: "http://127.0.0.1:9", addresses: [127.0.0.1/32]}
`,
		"tools/own.yaml": `tools:
  - {name: own, input_schema: {type: object}, run: {type: callback, url: "http://127.0.0.1:9/invoke", tool: own, addresses: [127.0.0.1/32]}}
  - {name: other, input_schema: {type: object}, run: {type: http, url: "https://other.example/"}}
`,
	}
	b := &Callbacks{logger: slog.New(slog.DiscardHandler), now: time.Now}
	for _, want := range [][]string{
		{"one https://one.example/base [] true", "three http://127.0.0.1:9 [127.0.0.1/32] false", " http://127.0.0.1:9/invoke [127.0.0.1/32] false"},
		{"one https://one.example/base [] true"},
	} {
		c, err := configs.Load(layout(t, files))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
			t.Fatal(err)
		}
		prepared, err := b.follow(context.Background(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		prepared.commit()
		var got []string
		for _, s := range b.servers() {
			got = append(got, fmt.Sprint(s.Name, " ", s.URL, " ", s.Addresses, " ", s.Credential != nil))
		}
		if !slices.Equal(got, want) {
			t.Errorf("found %q; expected %q", got, want)
		}
		files["servers.yaml"] = "servers: [{name: one, type: callback, url: \"https://one.example/base\", credential: \"env:ONE\"}]\n"
		files["tools/own.yaml"] = "tools: []\n"
	}
}
