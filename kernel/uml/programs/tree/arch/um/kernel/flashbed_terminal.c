// SPDX-License-Identifier: GPL-2.0-only
/* A terminal of the host's as a terminal of the guest (242:0), for `flashbed exec --shell`. The
 * kernel's own line discipline edits lines, echoes, sends SIGINT and SIGTSTP; the host's is raw.
 *
 * `flashbed_terminal=FD` on the command line says which descriptor it is. While a program has it
 * open, the guest waits in real time: the clock moves on as the host's does until the next event
 * or until a key is pressed (time_travel_sleep). Keys are looked for whenever the guest waits and
 * after every system call; one that comes while a program computes stops that with SIGALRM
 * (userspace(), F_SETOWN), so that Ctrl-C ends loops without calls as well.
 */
#include <linux/err.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/kernel.h>
#include <linux/time-internal.h>
#include <linux/tty.h>
#include <linux/tty_driver.h>
#include <linux/tty_flip.h>
#include <linux/workqueue.h>

#include <flashbed_host.h>

#define MAJOR_NUMBER 242
#define KEYS 256
#define ROOM 4096

/* Of time.c. */
extern unsigned long long time_travel_time;

static struct tty_port port;
static struct tty_driver *driver;
static int host_fd = -1;
static bool is_open;

static int __init set_terminal(char *text)
{
	return kstrtoint(text, 0, &host_fd) == 0;
}
__setup("flashbed_terminal=", set_terminal);

static void resize(struct work_struct *unused)
{
	struct tty_struct *tty = tty_port_tty_get(&port);
	unsigned short rows;
	unsigned short columns;
	struct winsize size;

	if (!tty)
		return;
	flashbed_host_window(host_fd, &rows, &columns);
	size = (struct winsize){.ws_row = rows, .ws_col = columns};
	tty_do_resize(tty, &size);
	tty_kref_put(tty);
}
static DECLARE_WORK(resizing, resize);

static void receive(struct time_travel_event *unused)
{
	unsigned char keys[KEYS];
	int got = 1;

	while (got > 0) {
		int room = min_t(int, tty_buffer_space_avail(&port), sizeof(keys));

		got = room > 0 ? flashbed_host_keys(host_fd, keys, room) : 0;
		if (got > 0)
			tty_insert_flip_string(&port, keys, got);
	}
	tty_flip_buffer_push(&port);
	if (flashbed_host_resized(host_fd))
		schedule_work(&resizing);
}

static struct time_travel_event came = {.fn = receive};

void flashbed_terminal_looks(void)
{
	unsigned long flags;

	if (!is_open || !flashbed_host_has_news(host_fd, 0))
		return;
	local_irq_save(flags);
	irq_enter();
	receive(NULL);
	irq_exit();
	local_irq_restore(flags);
	/* A program that takes no virtual time never lets the worker run. */
	flush_work(&port.buf.work);
}

void flashbed_terminal_waits(unsigned long long until)
{
	const unsigned long long most = until - time_travel_time;
	unsigned long long waited;

	if (!is_open || came.pending)
		return;
	waited = flashbed_host_has_news(host_fd, most);
	if (!waited)
		return;
	time_travel_time += min(waited, most);
	time_travel_add_event_rel(&came, 0);
}

static int activate(struct tty_port *unused, struct tty_struct *tty)
{
	unsigned short rows;
	unsigned short columns;

	flashbed_host_window(host_fd, &rows, &columns);
	tty->winsize = (struct winsize){.ws_row = rows, .ws_col = columns};
	flashbed_host_watch(host_fd);
	is_open = true;
	return 0;
}

static void shut_down(struct tty_port *unused)
{
	is_open = false;
	flashbed_host_watch(-1);
}

static const struct tty_port_operations port_ops = {
	.activate = activate,
	.shutdown = shut_down,
};

static int terminal_open(struct tty_struct *tty, struct file *file)
{
	return tty_port_open(&port, tty, file);
}

static void terminal_close(struct tty_struct *tty, struct file *file)
{
	tty_port_close(&port, tty, file);
}

static void terminal_hangup(struct tty_struct *tty)
{
	tty_port_hangup(&port);
}

static int terminal_write(struct tty_struct *tty, const unsigned char *from, int count)
{
	return (int)flashbed_host_write(host_fd, (const char *)from, count);
}

static unsigned int terminal_write_room(struct tty_struct *tty)
{
	return ROOM;
}

static const struct tty_operations ops = {
	.open = terminal_open,
	.close = terminal_close,
	.hangup = terminal_hangup,
	.write = terminal_write,
	.write_room = terminal_write_room,
};

static int __init terminal_init(void)
{
	int err;

	if (host_fd < 0)
		return 0;
	driver = tty_alloc_driver(1, TTY_DRIVER_REAL_RAW);
	if (IS_ERR(driver))
		return PTR_ERR(driver);
	driver->driver_name = "flashbed_terminal";
	driver->name = "ttyF";
	driver->major = MAJOR_NUMBER;
	driver->type = TTY_DRIVER_TYPE_CONSOLE;
	driver->init_termios = tty_std_termios;
	driver->init_termios.c_cflag |= CLOCAL;
	tty_set_operations(driver, &ops);
	tty_port_init(&port);
	port.ops = &port_ops;
	tty_port_link_device(&port, driver, 0);
	err = tty_register_driver(driver);
	if (err)
		tty_driver_kref_put(driver);
	return err;
}
device_initcall(terminal_init);
