package main

import (
	"log"
	"log/slog"

	"github.com/gin-gonic/gin"
	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
)

func newServe(e env) *cobra.Command {
	var config string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Serve the native HTTP face on server.listen, and metrics and details for
operators on server.admin_listen. The log is JSON on standard error.

The configuration is reloaded while serving: edit its files, or send SIGHUP to
reload at once. A file that does not load changes nothing; the fault is in the log,
in the metrics, and in /readyz of the admin listener. SIGTERM and SIGINT drain:
readiness ends first, then new connections are refused, and calls in flight finish.`,
		Example: `  callgate serve
  callgate serve --config callgate.yaml
  curl -s http://127.0.0.1:8080/v1/calls -H 'Content-Type: text/plain' \
      -d '{"tool":{"name":"time.now","arguments":{}}}'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := e.load(config)
			if err != nil {
				return err
			}
			gin.SetMode(gin.ReleaseMode)
			lines := app.NewLogWriter(e.stderr)
			defer func() { _ = lines.Close() }() // where this fails, no place is left to report it
			o := e.options(slog.New(slog.NewJSONHandler(lines.Direct(), nil)))
			o.RequestLog = slog.New(slog.NewJSONHandler(lines, nil))
			// net/http and its clients write what peers sent to the standard logger.
			log.SetOutput(discardedLines{o.Logger})
			log.SetFlags(0)
			return app.Serve(c.Context(), mainFile(loaded), loaded, o)
		},
	}
	configFlag(c, &config)
	return c
}

// discardedLines keeps what libraries log out of the log, but for the fact: it may
// hold bytes of a peer.
type discardedLines struct{ logger *slog.Logger }

func (d discardedLines) Write(p []byte) (int, error) {
	d.logger.Debug("a library logged a line", "bytes", len(p))
	return len(p), nil
}
