package main

import (
	"context"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// TestModeKeysLetsNobodyInWithoutKeys: a process that was started with keys
// stays shut, whatever a later configuration lacks.
func TestModeKeysLetsNobodyInWithoutKeys(t *testing.T) {
	c, err := configs.Default(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.Auth.Mode, c.Keys = configs.AuthKeys, nil
	offer, err := (&callers{}).offer(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	k, err := gateway.New(stateOf(c, offer.Authenticator), gateway.Parts{})
	if err != nil {
		t.Fatal(err)
	}
	r := k.Check(context.Background(), gateway.Request{Credential: "anything", Inputs: []gateway.Input{{Completion: []byte("text")}}})
	if r.Refusal == nil || r.Refusal.Code != refusal.Unauthenticated {
		t.Errorf("got %+v", r.Refusal)
	}
}
