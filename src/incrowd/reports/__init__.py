"""What people look at: plots now, HTML reports beside every release."""
