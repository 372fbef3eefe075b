package configs

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// TestTIR14CallbacksWithoutTLS: an operator of callback tools over a network is warned
// where they would do so without TLS.
func TestTIR14CallbacksWithoutTLS(t *testing.T) {
	const later = "tools:\n  - {name: later, input_schema: {type: object}, run: {type: callback, tool: later, url: \"https://tools.example/later\"}}\n# end\n"
	const servers = "servers:\n  - {name: hub, type: callback, url: \"https://tools.example\"}\n# end\n"
	for _, c := range []struct {
		callbacks    string
		tool, server bool
		warned       bool
	}{
		{`callbacks: {url: "http://gateway.example"}`, true, false, true},
		{`callbacks: {url: "http://gateway.example:8080/x"}`, false, true, true},
		{`callbacks: {url: "http://192.0.2.1:8080"}`, true, false, true},
		{`callbacks: {url: "http://localhost.example:8080"}`, true, false, true},
		{`callbacks: {url: "https://gateway.example"}`, true, true, false},
		{`callbacks: {url: "http://127.0.0.1:8080"}`, true, true, false},
		{`callbacks: {url: "http://[::1]:8080"}`, true, false, false},
		{`callbacks: {url: "http://localhost:8080"}`, true, false, false},
		{``, true, false, false}, // server.listen is a loopback address
		{`callbacks: {url: "http://gateway.example"}`, false, false, false}, // nobody calls back
	} {
		files := map[string]string{"callgate.yaml": "registry: {files: [tools/*.yaml, tools/*.json]}\n" + c.callbacks + "\n# end\n"}
		if c.tool {
			files["tools/later.yaml"] = later
		}
		if c.server {
			files["callgate.yaml"] = strings.Replace(files["callgate.yaml"], "# end", "servers: servers.yaml\n# end", 1)
			files["servers.yaml"] = servers
		}
		var warnings []*document.Fault
		for _, w := range loads(t, configtest.With(t, files)).Warnings {
			if strings.Contains(w.Message, "call back without TLS") {
				warnings = append(warnings, w)
			}
		}
		if len(warnings) > 1 || (len(warnings) == 1) != c.warned {
			t.Errorf("%s, %v, %v: warned %v", c.callbacks, c.tool, c.server, warnings)
		}
		if len(warnings) == 1 && (warnings[0].Line != 2 || !strings.HasSuffix(warnings[0].File, "callgate.yaml")) {
			t.Errorf("the warning is at %s:%d", warnings[0].File, warnings[0].Line)
		}
	}
}
