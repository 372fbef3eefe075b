package runs_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
)

func TestMain(m *testing.M) { facetest.Main(m) }

// GET /v1/runs/{id} shows a run to the principal that made it. For another's id the answer is
// the same, byte for byte, as for one that was never made.
func TestFace(t *testing.T) {
	config := facetest.Vectors(t)
	keys := map[string]*identity.Principal{}
	credentials := map[string]string{}
	for _, name := range []string{"a", "b"} {
		key, sha := identity.NewAPIKey()
		keys[sha], credentials[name] = &identity.Principal{Name: name, Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}}, key
	}
	known, err := identity.NewAPIKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	f := facetest.New(t, facetest.Options{Config: config, Change: func(c *gateway.Config, _ *calls.Deps) { c.Identity = known }})
	log := runs.New(runs.Options{})
	(&runs.Face{Executor: f.Executor, Log: log, Refuse: native.Refuse}).Mount(f.Server)
	get := func(as, id string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/v1/runs/"+id, http.NoBody)
		if as != "" {
			r.Header.Set("Authorization", "Bearer "+as)
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		return w
	}

	of := log.Begin("a", head)
	turn := turnOf(1)
	turn.Calls = append(turn.Calls, runs.Call{CallID: "call_x", Verdict: gateway.VerdictRefused, Tool: "x\u202ey", Error: runs.ErrorOf(refusal.New(refusal.UnknownTool, "There is no such tool."))})
	of.Add(turn)
	of.End(runs.ErrorOf(refusal.New(refusal.LoopDetected, "Three times.")))
	w := get(credentials["a"], of.ID())
	var got runs.Run
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || w.Header().Get("Callgate-Run-Id") != of.ID() {
		t.Fatalf("%d %s, %v", w.Code, w.Body, err)
	}
	if got.ID != of.ID() || got.State != runs.Failed || got.Error.Code != refusal.LoopDetected || len(got.Turns) != 1 || len(got.Turns[0].Calls) != 2 || got.Upstream != "sample" {
		t.Errorf("found %s", w.Body)
	}
	if !strings.Contains(w.Body.String(), `x\u202Ey`) && !strings.Contains(w.Body.String(), `x\u202ey`) {
		t.Errorf("a hidden code point is not escaped: %s", w.Body)
	}

	unknown := get(credentials["b"], "run_ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	another := get(credentials["b"], of.ID())
	if unknown.Code != 404 || !strings.Contains(unknown.Body.String(), `"not_found"`) || another.Code != 404 || another.Body.String() != unknown.Body.String() || another.Header().Get("Callgate-Run-Id") != "" {
		t.Errorf("an unknown run: %d %s; another's: %d %s", unknown.Code, unknown.Body, another.Code, another.Body)
	}
	for name, credential := range map[string]string{"none": "", "an unknown one": "cg_unknown"} {
		if w := get(credential, of.ID()); w.Code != 401 {
			t.Errorf("with the credential %s: %d %s", name, w.Code, w.Body)
		}
	}
	for _, id := range []string{strings.Repeat("x", 5000), "%00", "..%2f..", of.ID() + "%20"} {
		if w := get(credentials["a"], id); w.Code != 404 {
			t.Errorf("%.20s: %d %s", id, w.Code, w.Body)
		}
	}
}
