//go:build !noconsole

package app

import (
	"log/slog"

	"github.com/callgate/callgate/gateway/admin"
	"github.com/callgate/callgate/gateway/console"
)

// hasConsole says that this binary was built with the console.
const hasConsole = true

// newConsole returns the console over the admin API.
func newConsole(api *admin.API, loopback bool, logger *slog.Logger) ([]ownHandler, error) {
	pages, err := console.New(console.Options{API: api, Loopback: loopback, Log: logger})
	if err != nil {
		return nil, err
	}
	return []ownHandler{pages}, nil
}
