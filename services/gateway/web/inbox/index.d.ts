// SPDX-License-Identifier: Apache-2.0
export interface InboxTokenAnswer {
  token: string;
  /** RFC 3339; the elements ask again before it. */
  expires_at?: string;
}

export interface InboxItem {
  id: string;
  category: string;
  template: string;
  title: string;
  body: string;
  data?: unknown;
  locale?: string;
  direction?: "ltr" | "rtl";
  created_at: string;
  expires_at?: string;
  seen_at?: string;
  read_at?: string;
  archived_at?: string;
  clicked_at?: string;
  snoozed_until?: string;
  cursor: string;
}

export interface InboxCounts {
  unseen: number;
  unread: number;
  total: number;
  /** Higher is newer. */
  version: number;
}

declare class StentorElement extends HTMLElement {
  /** In the place of the attribute token-url. */
  getToken?: () => Promise<InboxTokenAnswer>;
  /** Texts in the place of the English ones, by their names in strings.js. */
  strings: Record<string, string>;
}

export declare class StentorInbox extends StentorElement {
  readonly open: boolean;
  toggle(open?: boolean): void;
}

export declare class StentorPreferences extends StentorElement {}

/** The address that a notification may open (http, https or mailto), or undefined. */
export declare function safeUrl(text: unknown, base?: string): string | undefined;

declare global {
  interface HTMLElementTagNameMap {
    "stentor-inbox": StentorInbox;
    "stentor-preferences": StentorPreferences;
  }
  interface HTMLElementEventMap {
    /** Before a notification opens; preventDefault() leaves it to the application. */
    "stentor-open": CustomEvent<{ item: InboxItem }>;
    "stentor-count": CustomEvent<InboxCounts>;
    "stentor-preference": CustomEvent<{ category: string; channel: string; on: boolean }>;
  }
}
