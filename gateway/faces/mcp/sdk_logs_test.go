package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/tool"
)

// TestOfficialClientHearsLogs: a client of the official SDK is told what it asks for, in
// the way of either era.
func TestOfficialClientHearsLogs(t *testing.T) {
	server := httptest.NewServer(open(t, plan{engine: logs(each()...)}))
	defer server.Close()
	for _, revision := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		t.Run(revision, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			connection := &http.Client{Transport: &http.Transport{}}
			defer connection.CloseIdleConnections()
			received := make(chan string, 100)
			client := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, &sdk.ClientOptions{
				LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) { //nolint:staticcheck // it is tested for as long as it is there
					received <- string(r.Params.Level)
					if r.Params.Data != string(r.Params.Level) {
						t.Errorf("%+v", r.Params)
					}
				},
			})
			s, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: connection}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			params := &sdk.CallToolParams{Name: "time_now"}
			if revision == "2026-07-28" {
				params.Meta = sdk.Meta{"io.modelcontextprotocol/logLevel": "alert"}
			} else if err := s.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: "alert"}); err != nil { //nolint:staticcheck // the same
				t.Fatal(err)
			}
			if r, err := s.CallTool(ctx, params); err != nil || r.IsError {
				t.Fatalf("%+v: %v", r, err)
			}
			var got []string // the client may hand them out in any order
			for range 2 {
				select {
				case level := <-received:
					got = append(got, level)
				case <-ctx.Done():
					t.Fatal("it is not told what was logged")
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tool.LogLevels()[6:]) {
				t.Errorf("told %v", got)
			}
		})
	}
}
