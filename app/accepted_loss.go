package app

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/wholefile"
)

// acceptedLossFile says in a data_dir up to when losses are accepted.
const acceptedLossFile = "loss-accepted"

// AcceptLoss notes in a data folder, whose gateway may be running, that what its store has lost is accepted
// where the gateway has noticed it by then. It holds for no later loss.
func AcceptLoss(dir string, noticed time.Time) error {
	file := filepath.Join(dir, acceptedLossFile)
	if err := wholefile.Replace(file, fmt.Appendln(nil, noticed.UTC().Format(time.RFC3339Nano))); err != nil {
		return fmt.Errorf("%s: %w", file, oserr.Reason(err))
	}
	return nil
}

// lossAccepted returns what tells whether a loss that was noticed at a time is accepted, by the
// file of AcceptLoss as it is then. It logs a file that cannot be read, once.
func lossAccepted(dir string, logger *slog.Logger, now func() time.Time) func(noticed time.Time) bool {
	file, reported := filepath.Join(dir, acceptedLossFile), ""
	return func(noticed time.Time) bool {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return false
		}
		var accepted time.Time
		if err == nil {
			accepted, err = time.Parse(time.RFC3339Nano, string(bytes.TrimSpace(text)))
		}
		if err == nil && accepted.After(now().Add(time.Minute)) {
			err = errors.New("it is of a time to come, so it would hold for losses to come")
		}
		if err != nil {
			if cause := oserr.Reason(err).Error(); cause != reported {
				reported = cause
				logger.Error("the acceptance of a loss does not count; run callgate audit accept-loss again, as the user that the gateway runs as", "file", file, "cause", cause)
			}
			return false
		}
		return !noticed.After(accepted)
	}
}
