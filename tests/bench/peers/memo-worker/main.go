// SPDX-License-Identifier: Apache-2.0

// An outbox worker of the usual kind, for comparison: a batch of PENDING rows is claimed, sent inline
// and marked, row by row, in one transaction. One process is one worker; replicas are more processes.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/smtp"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/lib/pq"
)

const (
	sender     = "memo@memo.example"
	maxRetries = 5
)

// claimed is a row of email_outbox that this transaction has locked.
type claimed struct {
	id        string
	payload   []byte
	recipient string
	retries   int
}

// memoMail is the payload as the memo service writes it.
type memoMail struct {
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

func main() {
	database := flag.String("database", "", "the application's Postgres (a libpq connection string)")
	server := flag.String("smtp", "127.0.0.1:25", "host:port of the mail server")
	batch := flag.Int("batch", 100, "rows of one transaction")
	idle := flag.Duration("idle", 100*time.Millisecond, "pause when nothing is pending")
	perMail := flag.Bool("connection-per-mail", false, "a new SMTP connection for every mail, as smtp.SendMail makes it")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	db, err := sql.Open("postgres", *database)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	mailer := &mailer{server: *server, perMail: *perMail}
	defer mailer.close()
	for ctx.Err() == nil {
		count, err := drainBatch(db, mailer, *batch)
		if err != nil {
			log.Print(err)
		}
		if err != nil || count == 0 {
			pause(ctx, *idle)
		}
	}
}

func pause(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// drainBatch is one run of the worker: everything it claims is marked by one commit, or is PENDING again.
func drainBatch(db *sql.DB, mailer *mailer, limit int) (int, error) {
	tx, err := db.Begin()
	if err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback()
	rows, err := claim(tx, limit)
	if err != nil {
		return 0, fmt.Errorf("claim: %w", err)
	}
	for _, row := range rows {
		if err := handle(tx, mailer, row); err != nil {
			return 0, fmt.Errorf("row %s: %w", row.id, err)
		}
	}
	return len(rows), tx.Commit()
}

func claim(tx *sql.Tx, limit int) ([]claimed, error) {
	found, err := tx.Query(`SELECT id, payload, recipient_email, retry_count FROM email_outbox
		WHERE status = 'PENDING' ORDER BY meta_created_at LIMIT $1 FOR UPDATE SKIP LOCKED`, limit)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var rows []claimed
	for found.Next() {
		var row claimed
		if err := found.Scan(&row.id, &row.payload, &row.recipient, &row.retries); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, found.Err()
}

func handle(tx *sql.Tx, mailer *mailer, row claimed) error {
	if _, err := tx.Exec(`UPDATE email_outbox SET status = 'SENDING', last_attempt_at = now(), meta_updated_at = now()
		WHERE id = $1`, row.id); err != nil {
		return err
	}
	if failure := mailer.send(row); failure != nil {
		status := "PENDING"
		if row.retries+1 >= maxRetries {
			status = "FAILED"
		}
		_, err := tx.Exec(`UPDATE email_outbox SET status = $2, retry_count = retry_count + 1, error_message = $3,
			meta_updated_at = now() WHERE id = $1`, row.id, status, failure.Error())
		return err
	}
	_, err := tx.Exec(`UPDATE email_outbox SET status = 'SENT', sent_at = now(), error_message = NULL,
		meta_updated_at = now() WHERE id = $1`, row.id)
	return err
}

// mailer keeps one SMTP connection for all mails, unless perMail.
type mailer struct {
	server  string
	perMail bool
	client  *smtp.Client
}

func (m *mailer) send(row claimed) error {
	text, err := compose(row)
	if err != nil {
		return err
	}
	if m.perMail {
		return smtp.SendMail(m.server, nil, sender, []string{row.recipient}, text)
	}
	if m.client == nil {
		if m.client, err = smtp.Dial(m.server); err != nil {
			return err
		}
	}
	if err := m.transfer(row.recipient, text); err != nil {
		m.close() // what state the conversation is in is not known
		return err
	}
	return nil
}

func (m *mailer) transfer(recipient string, text []byte) error {
	if err := m.client.Mail(sender); err != nil {
		return err
	}
	if err := m.client.Rcpt(recipient); err != nil {
		return err
	}
	data, err := m.client.Data()
	if err != nil {
		return err
	}
	if _, err := data.Write(text); err != nil {
		return err
	}
	return data.Close()
}

func (m *mailer) close() {
	if m.client == nil {
		return
	}
	if err := m.client.Quit(); err != nil && !errors.Is(err, net.ErrClosed) {
		m.client.Close()
	}
	m.client = nil
}

func compose(row claimed) ([]byte, error) {
	var mail memoMail
	if err := json.Unmarshal(row.payload, &mail); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "From: Memo <%s>\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: <%s@memo.example>\r\n", sender, row.recipient,
		mail.Subject, row.id)
	fmt.Fprintf(&text, "Date: %s\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n",
		time.Now().Format(time.RFC1123Z))
	text.WriteString(mail.Body)
	return text.Bytes(), nil
}
