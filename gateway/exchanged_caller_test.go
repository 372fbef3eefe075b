package gateway_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// asCaller is web.search, called as its caller.
func asCaller(t testing.TB) *registry.Registry {
	t.Helper()
	tools, err := registry.New([]registry.Tool{{
		Name: "web.search", Version: "1.0.0", Effect: "read", InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}}}`),
		Run: tool.Run{Type: "http", URL: "https://search.example/", Credential: &tool.Credential{
			In: tool.InExchange, Secret: "env:KEY", OAuth: &tool.OAuth{TokenURL: "https://idp.example/token", ClientID: "gateway", Grant: tool.GrantTokenExchange},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// TestCallersWithTokens: the engine is given the token of a caller that was authenticated by it, for a tool that is called as its
// caller alone. Who has none, or one that ends, is refused before the call is dispatched.
func TestCallersWithTokens(t *testing.T) {
	now := time.Now()
	caller := func(expires time.Time) *identity.Principal {
		return &identity.Principal{Name: "jwt:https://idp.example#ann", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}, Expires: expires}
	}
	known := knows{"long": caller(now.Add(time.Minute)), "short": caller(now.Add(29 * time.Second)), "key": caller(time.Time{})}
	for name, c := range map[string]struct {
		credential string
		identity   gateway.Authenticator
		code       refusal.Code
	}{
		"a token":              {"long", known, ""},
		"a token that ends":    {"short", known, refusal.CredentialExpired},
		"a key":                {"key", known, refusal.CredentialUnavailable},
		"no authentication":    {"long", nil, refusal.CredentialUnavailable},
		"nothing of a request": {"", nil, refusal.CredentialUnavailable},
	} {
		for _, tools := range []*registry.Registry{asCaller(t), elsewhere(t)} {
			var got []tool.Call
			e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
				got = append(got, task)
				return tool.Result{Body: []byte(`{"results":[]}`), JSON: true, Attempts: 1}, nil
			}}
			s, j := loose(t), &journal{}
			s.Tools, s.Identity = tools, c.identity
			k := kernelOf(t, s, calls.Deps{
				Deps:   gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j, Now: func() time.Time { return now }},
				Engine: e, Store: store.NewMemory(func() time.Time { return now }),
			})
			request := completion(search)
			request.Credential = c.credential
			o := handle(k, request, "")
			entry, _ := tools.Lookup("web.search")
			if entry.SharedRun().Credential == nil { // it is called as the gateway
				if o.Refusal != nil || len(got) != 1 || got[0].Caller != nil {
					t.Errorf("%s, a tool without: %+v, ran %+v", name, o.Refusal, got)
				}
				continue
			}
			if c.code == "" {
				if o.Refusal != nil || len(got) != 1 || got[0].Caller == nil || got[0].Caller.Token() != c.credential || got[0].Caller.Name != known["long"].Name {
					t.Errorf("%s: %+v, ran %+v", name, o.Refusal, got)
				}
				continue
			}
			if o.Refusal == nil || o.Refusal.Code != c.code || o.Refusal.Stage != refusal.Execute || len(got) != 0 {
				t.Errorf("%s: %+v, ran %+v", name, o.Refusal, got)
			}
		}
	}
}
