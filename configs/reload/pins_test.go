package reload

import (
	"encoding/json"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/tool"
)

// serverMain is a configuration with a server and a data folder of its own.
func serverMain(data string) map[string]string {
	return map[string]string{
		"callgate.yaml": "registry: {files: [tools/*.yaml, tools/*.json]}\nservers: servers.yaml\ndata_dir: " + data + "\n# end\n",
		"servers.yaml":  "servers:\n  - {name: hub, type: mcp, url: \"https://example.com/mcp\", credential: env:HUB_TOKEN}\n# end\n",
	}
}

// TestPinsWaitWithTheirFolder: another data_dir waits for a restart, and so does what
// was accepted there.
func TestPinsWaitWithTheirFolder(t *testing.T) {
	dir, data, next := t.TempDir(), t.TempDir(), t.TempDir()
	main := configtest.Write(t, dir, configtest.With(t, serverMain(data)))
	first, err := configs.Load(main)
	if err != nil {
		t.Fatal(err)
	}
	for folder, name := range map[string]string{data: "search", next: "get_one"} {
		first.DataDir, first.Pins = folder, nil
		if err := lockfile.Write(first.DataDir, "hub", first.Pins["hub"], lockfile.Accept(first.Servers[0], []tool.Definition{{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}}).Pins); err != nil {
			t.Fatal(err)
		}
	}
	h := open(t, main, WatcherOptions{})
	configtest.Write(t, dir, configtest.With(t, serverMain(next)))
	c, err := h.load(newFingerprint(main))
	if err != nil {
		t.Fatal(err)
	}
	_, still := c.Tools.Lookup("hub.search")
	_, already := c.Tools.Lookup("hub.get_one")
	if !still || already || c.DataDir != next {
		t.Errorf("before the restart: %v, %v, in %s", still, already, c.DataDir)
	}
}
